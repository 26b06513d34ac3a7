"""A question as an item of QTI 2.1.

Names and order of elements follow IMS QTI 2.1 (imsqti_v2p1.xsd).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from xml.etree import ElementTree as ET

from readerkit.quiz.portable import (
    ChoiceForm,
    NumberForm,
    OrderForm,
    PairsForm,
    PortableQuestion,
    TextForm,
    WordsForm,
    key_lines,
    reasons,
)
from readerkit.quiz.prompts import QuotedWork
from readerkit.render.quiz_text import bare, named, notes, pieces, sources

QTI = "http://www.imsglobal.org/xsd/imsqti_v2p1"
RESPONSE, SCORE, FEEDBACK, SOLUTION = "RESPONSE", "SCORE", "FEEDBACK", "SOLUTION"


def add(
    parent: ET.Element, tag: str, text: str = "", /, **attributes: str
) -> ET.Element:
    """Return a new child of an element."""
    child = ET.SubElement(parent, tag, attributes)
    child.text = text or None
    return child


# --- one item ---


def item_of(question: PortableQuestion) -> ET.Element:
    """Return a question as an item."""
    item = ET.Element(
        "assessmentItem",
        {
            "xmlns": QTI,
            "identifier": identifier_of(question),
            "title": question.prompt.id,
            "label": f"{question.prompt.topic} {question.prompt.difficulty}",
            "adaptive": "false",
            "timeDependent": "false",
            "toolName": "readerkit",
            "{http://www.w3.org/XML/1998/namespace}lang": question.language,
        },
    )
    _declare(item, question)
    body = add(item, "itemBody")
    _stem(body, question)
    _interaction(body, question)
    _process(add(item, "responseProcessing"), question)
    for number, (_, remark) in enumerate(_told(question), 1):
        _modal(item, FEEDBACK, f"WRONG_{number}", [remark])
    _solution(item, question)
    return item


def identifier_of(question: PortableQuestion) -> str:
    """Return the name of a question's item."""
    return f"q{question.phase}-{question.prompt.id}"


def _declare(item: ET.Element, question: PortableQuestion) -> None:
    """Declare what is answered, with its key, and what comes of it."""
    cardinality, base, key = _key(question)
    declared = add(
        item,
        "responseDeclaration",
        identifier=RESPONSE,
        cardinality=cardinality,
        baseType=base,
    )
    if key:
        right = add(declared, "correctResponse")
        for value in key:
            add(right, "value", value)
    if isinstance(question.form, PairsForm):
        share = f"{1 / len(key):.12g}"
        mapped = add(declared, "mapping", defaultValue="0", lowerBound="0")
        for value in key:
            add(mapped, "mapEntry", mapKey=value, mappedValue=share)
    score = add(
        item,
        "outcomeDeclaration",
        identifier=SCORE,
        cardinality="single",
        baseType="float",
        normalMaximum="1",
    )
    add(add(score, "defaultValue"), "value", "0")
    for name, many in ((FEEDBACK, "multiple"), (SOLUTION, "single")):
        add(
            item,
            "outcomeDeclaration",
            identifier=name,
            cardinality=many,
            baseType="identifier",
        )


def _key(question: PortableQuestion) -> tuple[str, str, list[str]]:
    """Return cardinality, base type and key of the response."""
    match question.form:
        case ChoiceForm(options=options, several=several):
            rights = [f"C{n}" for n, each in enumerate(options, 1) if each.right]
            return "multiple" if several else "single", "identifier", rights
        case NumberForm(key=key):
            return "single", "float", [f"{key:.12g}"]
        case OrderForm(valid=(order, *_)):
            return "ordered", "identifier", [f"C{item + 1}" for item in order]
        case PairsForm(pairs=pairs, rights=rights):
            key_pairs = [
                f"L{number} R{rights.index(right) + 1}"
                for number, (_, right) in enumerate(pairs, 1)
            ]
            return "multiple", "directedPair", key_pairs
        case WordsForm(accept=accept):
            return "single", "string", [bare(accept[0])]
    return "single", "string", []


def _stem(body: ET.Element, question: PortableQuestion) -> None:
    _mixed(add(body, "p"), question.prompt.prompt)
    if question.code:
        add(body, "pre", bare("\n".join(question.code)))
    for note in notes(question):
        _mixed(add(body, "p"), note)
    if isinstance(question.form, NumberForm | WordsForm):
        _mixed(add(body, "p"), f"({question.prompt.how})")


def _interaction(body: ET.Element, question: PortableQuestion) -> None:
    match question.form:
        case ChoiceForm(options=options, several=several):
            most = "0" if several else "1"
            asked = add(
                body,
                "choiceInteraction",
                responseIdentifier=RESPONSE,
                shuffle="true",
                maxChoices=most,
            )
            _choices(asked, [each.text for each in options])
        case OrderForm(items=items):
            asked = add(
                body, "orderInteraction", responseIdentifier=RESPONSE, shuffle="false"
            )
            _choices(asked, items)
        case PairsForm(pairs=pairs, rights=rights):
            asked = add(
                body,
                "matchInteraction",
                responseIdentifier=RESPONSE,
                shuffle="true",
                maxAssociations=str(len(pairs)),
            )
            _sides(asked, "L", [left for left, _ in pairs], "1")
            _sides(asked, "R", rights, str(len(pairs)))
        case TextForm():
            add(body, "extendedTextInteraction", responseIdentifier=RESPONSE)
        case _:
            add(add(body, "p"), "textEntryInteraction", responseIdentifier=RESPONSE)


def _choices(asked: ET.Element, texts: Iterable[str]) -> None:
    for number, text in enumerate(texts, 1):
        _mixed(add(asked, "simpleChoice", identifier=f"C{number}"), text)


def _sides(asked: ET.Element, label: str, texts: Iterable[str], most: str) -> None:
    side = add(asked, "simpleMatchSet")
    for number, text in enumerate(texts, 1):
        name = f"{label}{number}"
        choice = add(side, "simpleAssociableChoice", identifier=name, matchMax=most)
        _mixed(choice, text)


# --- what an answer earns ---


def _process(rules: ET.Element, question: PortableQuestion) -> None:
    """Write what an answer earns, which mistake it is, and that the key is told."""
    form = question.form
    if isinstance(form, PairsForm):
        earned = add(rules, "setOutcomeValue", identifier=SCORE)
        add(earned, "mapResponse", identifier=RESPONSE)
    elif not isinstance(form, TextForm):
        condition = add(rules, "responseCondition")
        found = add(condition, "responseIf")
        _right(found, question)
        _set(found, SCORE, "float", "1")
    for number, (test, _) in enumerate(_told(question), 1):
        condition = add(add(rules, "responseCondition"), "responseIf")
        condition.append(test)
        value = add(condition, "setOutcomeValue", identifier=FEEDBACK)
        both = add(value, "multiple")
        add(both, "variable", identifier=FEEDBACK)
        _base(both, "identifier", f"WRONG_{number}")
    _set(rules, SOLUTION, "identifier", SOLUTION)


def _right(found: ET.Element, question: PortableQuestion) -> None:
    """Add the test that an answer is right."""
    match question.form:
        case NumberForm(within=within):
            near = f"{within:.12g} {within:.12g}"
            asked = add(found, "equal", toleranceMode="absolute", tolerance=near)
            add(asked, "variable", identifier=RESPONSE)
            add(asked, "correct", identifier=RESPONSE)
        case OrderForm(valid=valid):
            any_of = add(found, "or")
            for order in valid:
                asked = add(any_of, "match")
                add(asked, "variable", identifier=RESPONSE)
                listed = add(asked, "ordered")
                for item in order:
                    _base(listed, "identifier", f"C{item + 1}")
        case WordsForm(accept=accept):
            any_of = add(found, "or")
            for text in accept:
                any_of.append(_typed(text))
        case _:
            asked = add(found, "match")
            add(asked, "variable", identifier=RESPONSE)
            add(asked, "correct", identifier=RESPONSE)


def _told(question: PortableQuestion) -> Iterator[tuple[ET.Element, str]]:
    """Yield the test of each known wrong answer, with what is said to it."""
    match question.form:
        case ChoiceForm(options=options, several=several):
            for number, each in enumerate(options, 1):
                if each.why:
                    test = ET.Element("member" if several else "match")
                    _base(test, "identifier", f"C{number}")
                    add(test, "variable", identifier=RESPONSE)
                    yield test, each.why.text
        case NumberForm(mistakes=mistakes):
            for value, near, remark in mistakes:
                tolerance = f"{near:.12g} {near:.12g}"
                test = ET.Element(
                    "equal", {"toleranceMode": "absolute", "tolerance": tolerance}
                )
                add(test, "variable", identifier=RESPONSE)
                _base(test, "float", f"{value:.12g}")
                yield test, remark.text
        case WordsForm(mistakes=mistakes):
            for text, remark in mistakes:
                yield _typed(text), remark.text


def _typed(text: str) -> ET.Element:
    test = ET.Element("stringMatch", {"caseSensitive": "false"})
    add(test, "variable", identifier=RESPONSE)
    _base(test, "string", bare(text))
    return test


def _set(rules: ET.Element, outcome: str, base: str, value: str) -> None:
    _base(add(rules, "setOutcomeValue", identifier=outcome), base, value)


def _base(parent: ET.Element, base: str, value: str) -> None:
    add(parent, "baseValue", value, baseType=base)


# --- what is said in the end ---


def _solution(item: ET.Element, question: PortableQuestion) -> None:
    told = question.told
    shown = _modal(item, SOLUTION, SOLUTION, [*key_lines(question), told.explanation])
    if isinstance(question.form, PairsForm | OrderForm):
        for what, remark in reasons(question.form):
            _mixed(add(shown, "p"), f"{what}: {remark.text}")
    for source in sources(question):
        line = add(shown, "p")
        if isinstance(source, QuotedWork) and source.url:
            line = add(line, "a", href=source.url)
        _mixed(line, named(source))


def _modal(
    item: ET.Element, outcome: str, name: str, texts: Iterable[str]
) -> ET.Element:
    shown = add(
        item,
        "modalFeedback",
        outcomeIdentifier=outcome,
        identifier=name,
        showHide="show",
    )
    for text in texts:
        _mixed(add(shown, "p"), text)
    return shown


def _mixed(parent: ET.Element, text: str) -> None:
    """Write a text in which code is marked."""
    last: ET.Element | None = None
    for piece, is_code in pieces(text):
        if is_code:
            last = add(parent, "code", piece)
        elif last is None:
            parent.text = (parent.text or "") + piece
        else:
            last.tail = (last.tail or "") + piece

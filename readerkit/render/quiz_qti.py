"""Questions as a QTI 2.1 package: an item each, a test, and a manifest.

Names and order of elements follow IMS QTI 2.1 (imsqti_v2p1.xsd) and content packaging
1.1 (imscp_v1p1.xsd).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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
PACKAGE = "http://www.imsglobal.org/xsd/imscp_v1p1"
RESPONSE, SCORE, FEEDBACK, SOLUTION = "RESPONSE", "SCORE", "FEEDBACK", "SOLUTION"


def package(questions: Sequence[PortableQuestion], title: str) -> dict[str, bytes]:
    """Return the files of a package by their names."""
    items = {f"items/{each.prompt.id}.xml": _item(each) for each in questions}
    files = {
        "imsmanifest.xml": _manifest([*items]),
        "test.xml": _test(questions, title),
        **items,
    }
    return {
        name: ET.tostring(root, encoding="utf-8", xml_declaration=True)
        for name, root in files.items()
    }


def is_essay(question: PortableQuestion) -> bool:
    """Tell whether a person has to mark a question."""
    return isinstance(question.form, TextForm)


def _add(
    parent: ET.Element, tag: str, text: str = "", /, **attributes: str
) -> ET.Element:
    child = ET.SubElement(parent, tag, attributes)
    child.text = text or None
    return child


# --- one item ---


def _item(question: PortableQuestion) -> ET.Element:
    item = ET.Element(
        "assessmentItem",
        {
            "xmlns": QTI,
            "identifier": _identifier(question),
            "title": question.prompt.id,
            "label": f"{question.prompt.topic} {question.prompt.difficulty}",
            "adaptive": "false",
            "timeDependent": "false",
            "toolName": "readerkit",
            "{http://www.w3.org/XML/1998/namespace}lang": question.language,
        },
    )
    _declare(item, question)
    body = _add(item, "itemBody")
    _stem(body, question)
    _interaction(body, question)
    _process(_add(item, "responseProcessing"), question)
    for number, (_, remark) in enumerate(_told(question), 1):
        _modal(item, FEEDBACK, f"WRONG_{number}", [remark])
    _solution(item, question)
    return item


def _identifier(question: PortableQuestion) -> str:
    return f"q{question.phase}-{question.prompt.id}"


def _declare(item: ET.Element, question: PortableQuestion) -> None:
    """Declare what is answered, with its key, and what comes of it."""
    cardinality, base, key = _key(question)
    declared = _add(
        item,
        "responseDeclaration",
        identifier=RESPONSE,
        cardinality=cardinality,
        baseType=base,
    )
    if key:
        right = _add(declared, "correctResponse")
        for value in key:
            _add(right, "value", value)
    if isinstance(question.form, PairsForm):
        share = f"{1 / len(key):.12g}"
        mapped = _add(declared, "mapping", defaultValue="0", lowerBound="0")
        for value in key:
            _add(mapped, "mapEntry", mapKey=value, mappedValue=share)
    score = _add(
        item,
        "outcomeDeclaration",
        identifier=SCORE,
        cardinality="single",
        baseType="float",
        normalMaximum="1",
    )
    _add(_add(score, "defaultValue"), "value", "0")
    for name, many in ((FEEDBACK, "multiple"), (SOLUTION, "single")):
        _add(
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
    _mixed(_add(body, "p"), question.prompt.prompt)
    if question.code:
        _add(body, "pre", bare("\n".join(question.code)))
    for note in notes(question):
        _mixed(_add(body, "p"), note)
    if isinstance(question.form, NumberForm | WordsForm):
        _mixed(_add(body, "p"), f"({question.prompt.how})")


def _interaction(body: ET.Element, question: PortableQuestion) -> None:
    match question.form:
        case ChoiceForm(options=options, several=several):
            most = "0" if several else "1"
            asked = _add(
                body,
                "choiceInteraction",
                responseIdentifier=RESPONSE,
                shuffle="true",
                maxChoices=most,
            )
            _choices(asked, [each.text for each in options])
        case OrderForm(items=items):
            asked = _add(
                body, "orderInteraction", responseIdentifier=RESPONSE, shuffle="false"
            )
            _choices(asked, items)
        case PairsForm(pairs=pairs, rights=rights):
            asked = _add(
                body,
                "matchInteraction",
                responseIdentifier=RESPONSE,
                shuffle="true",
                maxAssociations=str(len(pairs)),
            )
            _sides(asked, "L", [left for left, _ in pairs], "1")
            _sides(asked, "R", rights, str(len(pairs)))
        case TextForm():
            _add(body, "extendedTextInteraction", responseIdentifier=RESPONSE)
        case _:
            _add(_add(body, "p"), "textEntryInteraction", responseIdentifier=RESPONSE)


def _choices(asked: ET.Element, texts: Iterable[str]) -> None:
    for number, text in enumerate(texts, 1):
        _mixed(_add(asked, "simpleChoice", identifier=f"C{number}"), text)


def _sides(asked: ET.Element, label: str, texts: Iterable[str], most: str) -> None:
    side = _add(asked, "simpleMatchSet")
    for number, text in enumerate(texts, 1):
        name = f"{label}{number}"
        choice = _add(side, "simpleAssociableChoice", identifier=name, matchMax=most)
        _mixed(choice, text)


# --- what an answer earns ---


def _process(rules: ET.Element, question: PortableQuestion) -> None:
    """Write what an answer earns, which mistake it is, and that the key is told."""
    form = question.form
    if isinstance(form, PairsForm):
        earned = _add(rules, "setOutcomeValue", identifier=SCORE)
        _add(earned, "mapResponse", identifier=RESPONSE)
    elif not isinstance(form, TextForm):
        condition = _add(rules, "responseCondition")
        found = _add(condition, "responseIf")
        _right(found, question)
        _set(found, SCORE, "float", "1")
    for number, (test, _) in enumerate(_told(question), 1):
        condition = _add(_add(rules, "responseCondition"), "responseIf")
        condition.append(test)
        value = _add(condition, "setOutcomeValue", identifier=FEEDBACK)
        both = _add(value, "multiple")
        _add(both, "variable", identifier=FEEDBACK)
        _base(both, "identifier", f"WRONG_{number}")
    _set(rules, SOLUTION, "identifier", SOLUTION)


def _right(found: ET.Element, question: PortableQuestion) -> None:
    """Add the test that an answer is right."""
    match question.form:
        case NumberForm(within=within):
            near = f"{within:.12g} {within:.12g}"
            asked = _add(found, "equal", toleranceMode="absolute", tolerance=near)
            _add(asked, "variable", identifier=RESPONSE)
            _add(asked, "correct", identifier=RESPONSE)
        case OrderForm(valid=valid):
            any_of = _add(found, "or")
            for order in valid:
                asked = _add(any_of, "match")
                _add(asked, "variable", identifier=RESPONSE)
                listed = _add(asked, "ordered")
                for item in order:
                    _base(listed, "identifier", f"C{item + 1}")
        case WordsForm(accept=accept):
            any_of = _add(found, "or")
            for text in accept:
                any_of.append(_typed(text))
        case _:
            asked = _add(found, "match")
            _add(asked, "variable", identifier=RESPONSE)
            _add(asked, "correct", identifier=RESPONSE)


def _told(question: PortableQuestion) -> Iterator[tuple[ET.Element, str]]:
    """Yield the test of each known wrong answer, with what is said to it."""
    match question.form:
        case ChoiceForm(options=options, several=several):
            for number, each in enumerate(options, 1):
                if each.why:
                    test = ET.Element("member" if several else "match")
                    _base(test, "identifier", f"C{number}")
                    _add(test, "variable", identifier=RESPONSE)
                    yield test, each.why.text
        case NumberForm(mistakes=mistakes):
            for value, near, remark in mistakes:
                tolerance = f"{near:.12g} {near:.12g}"
                test = ET.Element(
                    "equal", {"toleranceMode": "absolute", "tolerance": tolerance}
                )
                _add(test, "variable", identifier=RESPONSE)
                _base(test, "float", f"{value:.12g}")
                yield test, remark.text
        case WordsForm(mistakes=mistakes):
            for text, remark in mistakes:
                yield _typed(text), remark.text


def _typed(text: str) -> ET.Element:
    test = ET.Element("stringMatch", {"caseSensitive": "false"})
    _add(test, "variable", identifier=RESPONSE)
    _base(test, "string", bare(text))
    return test


def _set(rules: ET.Element, outcome: str, base: str, value: str) -> None:
    _base(_add(rules, "setOutcomeValue", identifier=outcome), base, value)


def _base(parent: ET.Element, base: str, value: str) -> None:
    _add(parent, "baseValue", value, baseType=base)


# --- what is said in the end ---


def _solution(item: ET.Element, question: PortableQuestion) -> None:
    told = question.told
    shown = _modal(item, SOLUTION, SOLUTION, [*key_lines(question), told.explanation])
    if isinstance(question.form, PairsForm | OrderForm):
        for what, remark in reasons(question.form):
            _mixed(_add(shown, "p"), f"{what}: {remark.text}")
    for source in sources(question):
        line = _add(shown, "p")
        if isinstance(source, QuotedWork) and source.url:
            line = _add(line, "a", href=source.url)
        _mixed(line, named(source))


def _modal(
    item: ET.Element, outcome: str, name: str, texts: Iterable[str]
) -> ET.Element:
    shown = _add(
        item,
        "modalFeedback",
        outcomeIdentifier=outcome,
        identifier=name,
        showHide="show",
    )
    for text in texts:
        _mixed(_add(shown, "p"), text)
    return shown


def _mixed(parent: ET.Element, text: str) -> None:
    """Write a text in which code is marked."""
    last: ET.Element | None = None
    for piece, is_code in pieces(text):
        if is_code:
            last = _add(parent, "code", piece)
        elif last is None:
            parent.text = (parent.text or "") + piece
        else:
            last.tail = (last.tail or "") + piece


# --- around the items ---


def _test(questions: Iterable[PortableQuestion], title: str) -> ET.Element:
    test = ET.Element(
        "assessmentTest", {"xmlns": QTI, "identifier": "test", "title": title}
    )
    part = _add(
        test,
        "testPart",
        identifier="part",
        navigationMode="nonlinear",
        submissionMode="individual",
    )
    sections: dict[str, ET.Element] = {}
    for each in questions:
        topic = each.prompt.topic
        if topic not in sections:
            sections[topic] = _add(
                part,
                "assessmentSection",
                identifier=f"topic-{topic}",
                title=topic.replace("_", " "),
                visible="true",
            )
        _add(
            sections[topic],
            "assessmentItemRef",
            identifier=_identifier(each),
            href=f"items/{each.prompt.id}.xml",
        )
    return test


def _manifest(items: Iterable[str]) -> ET.Element:
    manifest = ET.Element("manifest", {"xmlns": PACKAGE, "identifier": "package"})
    about = _add(manifest, "metadata")
    _add(about, "schema", "QTIv2.1 Package")
    _add(about, "schemaversion", "1.0.0")
    _add(manifest, "organizations")
    resources = _add(manifest, "resources")
    names = {name: f"item-{number}" for number, name in enumerate(items, 1)}
    kinds = {"test.xml": ("test", "imsqti_test_xmlv2p1")} | {
        name: (identifier, "imsqti_item_xmlv2p1") for name, identifier in names.items()
    }
    for name, (identifier, kind) in kinds.items():
        resource = _add(
            resources, "resource", identifier=identifier, type=kind, href=name
        )
        _add(resource, "file", href=name)
        if name == "test.xml":
            for each in names.values():
                _add(resource, "dependency", identifierref=each)
    return manifest

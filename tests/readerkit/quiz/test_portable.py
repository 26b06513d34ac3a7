"""Questions for other programs: what they call right is right here, nothing else."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from readerkit.app.interface_translation import say_in
from readerkit.app.quiz_banks import QuizBanks
from readerkit.quiz.messages import Remark
from readerkit.quiz.portable import (
    ChoiceForm,
    NumberForm,
    OrderForm,
    PairsForm,
    PortableOption,
    PortableQuestion,
    TextForm,
    WordsForm,
    portable,
)
from readerkit.quiz.variant import AnswerError
from readerkit.render import quiz_gift, quiz_qti
from tests.gift_reader import read_gift, shown
from tests.readerkit.quiz.sample import sample_bank

SAMPLE = sample_bank()
BANK = QuizBanks.at(None).bank(35).shared()
SPANISH = QuizBanks.at(None).bank(35, language="es").shared()
QTI = f"{{{quiz_qti.QTI}}}"


@pytest.mark.parametrize(("bank", "seed"), [(BANK, 0), (BANK, 7), (SPANISH, 23)])
def test_key_of_another_program_is_the_key_here(bank, seed):
    for name in bank.questions:
        question, variant = portable(bank, name, seed), bank.variant(name, seed)
        for typed, credit in _typed(question):
            try:
                grade = variant.grade(typed)
            except AnswerError as error:
                raise AssertionError(f"{name}: {typed}: {error}") from error
            assert grade.is_right == credit, f"{name}: {typed}"


def _typed(question: PortableQuestion):
    """Yield what our quiz would take for the answers of a form, and if it is right."""
    prompt, form = question.prompt, question.form
    match form:
        case ChoiceForm(options=options) if question.kind == "predict":
            yield from ((each.text, each.right) for each in options)
        case ChoiceForm(options=options, several=several):
            labels = [each.label for each in prompt.options]
            found = zip(labels, options, strict=True)
            rights = [label for label, each in found if each.right]
            yield " ".join(rights), True
            if not several:
                yield from ((each, False) for each in labels if each not in rights)
        case NumberForm(key=key, within=within, mistakes=mistakes):
            if question.kind == "locate":
                yield f"{key - within:.0f}-{key + within:.0f}", True
                return
            unit = getattr(prompt, "unit", "")
            for value in (key, key + 0.99 * within, key - 0.99 * within):
                yield f"{value:.12g} {unit}", True
            beyond = key + 1.02 * within + 1e-6 * max(abs(key), 1)
            for value in (beyond, *(m[0] for m in mistakes)):
                yield f"{value:.12g} {unit}", False
        case OrderForm(valid=valid):
            for order in valid:
                yield " ".join(str(place + 1) for place in order), True
        case PairsForm(pairs=pairs) if question.kind == "match":
            labels = {each.text: each.label for each in prompt.right}
            at = {each.text: each.label for each in prompt.left}
            yield " ".join(at[left] + labels[right] for left, right in pairs), True
        case PairsForm(pairs=pairs):
            cells = [cell for _, cell in pairs]
            width = len(prompt.columns)
            rows = [cells[at : at + width] for at in range(0, len(cells), width)]
            yield "\n".join(map(" ".join, rows)), True
        case WordsForm(accept=accept, mistakes=mistakes):
            yield from ((text, True) for text in accept)
            yield from ((text, False) for text, _ in mistakes)


# --- GIFT ---


@pytest.mark.parametrize("bank", [BANK, SPANISH], ids=["en", "es"])
def test_every_question_is_read_as_moodle_reads_it(bank):
    questions = [portable(bank, name, 0) for name in bank.questions]
    read = read_gift(quiz_gift.gift(questions))
    assert [each.name for each in read] == [each.prompt.id for each in questions]
    for question, found in zip(questions, read, strict=True):
        rights = [each for each in found.answers if each.weight > 0]
        match question.form:
            case ChoiceForm(options=options, several=several):
                assert [shown(each.text) for each in rights] == [
                    each.text for each in options if each.right
                ]
                assert sum(each.weight for each in rights) == pytest.approx(100)
                assert several == all(each.weight < 100 for each in rights)
            case NumberForm(key=key):
                assert found.kind == "numerical"
                [value, near] = map(float, rights[0].text.split(":"))
                assert (value, near >= 0) == (pytest.approx(key), True)
            case PairsForm(pairs=pairs, spare=spare):
                assert found.kind == "match"
                told = [(shown(each.text), each.feedback) for each in found.answers]
                assert len(told) == len(pairs) + len(spare)
                assert [left for left, _ in told[: len(pairs)]] == [p[0] for p in pairs]
            case OrderForm(valid=[_]):
                assert found.kind == "match"
            case WordsForm():
                assert found.kind == "shortanswer" and rights
            case _:
                assert found.kind == "essay" and found.feedback


TEXTS = st.text(
    st.sampled_from(r"ab \:#={}~%[]<>&*-/\"'?$é→" + "\n"), min_size=1, max_size=40
).filter(lambda text: text.strip())


@given(st.lists(TEXTS, min_size=3, max_size=5, unique_by=str.strip), TEXTS, TEXTS)
def test_no_text_is_taken_for_a_sign_of_gift(texts, stem, why):
    base = portable(SAMPLE, "pick", 0)
    prompt = replace(base.prompt, id="any", prompt=stem)
    first, *rest = texts
    options = [
        PortableOption(first, True),
        *(PortableOption(text, False, Remark(why)) for text in rest),
    ]
    pairs = [(text, text) for text in texts]
    forms = [
        ChoiceForm(tuple(options), several=False),
        ChoiceForm(tuple(options), several=True),
        PairsForm(tuple(pairs), ("spare",)),
        WordsForm(tuple(texts), ((why, Remark(stem)),)),
        TextForm(),
    ]
    told = [replace(base, prompt=prompt, form=form) for form in forms]
    single, several, match, words, essay = read_gift(quiz_gift.gift(told))
    wanted, reason = [text.strip() for text in texts], why.strip()
    for each in (single, several, match, words, essay):
        assert shown(each.text).strip().startswith(stem.strip())
    for each in (single, several):
        assert [shown(answer.text) for answer in each.answers] == wanted
        said = [shown(answer.feedback) for answer in each.answers]
        assert said == ["", *(reason for _ in rest)]
    assert [each.weight for each in single.answers] == [100] + [0] * len(rest)
    assert [shown(each.text) for each in match.answers[:-1]] == wanted
    assert [each.feedback for each in match.answers] == [*wanted, "spare"]
    if any("->" in text for text in texts):
        assert words.kind == "essay"
    else:
        typed = [each.text.replace("\\*", "*") for each in words.answers]
        assert typed[: len(wanted)] == wanted


# --- QTI ---

# What may stand in what, in this order: imsqti_v2p1.xsd, the part that is written here.
CHILDREN = {
    "assessmentItem": "responseDeclaration+ outcomeDeclaration* itemBody? "
    "responseProcessing? modalFeedback*",
    "responseDeclaration": "correctResponse? mapping?",
    "correctResponse": "value+",
    "mapping": "mapEntry+",
    "outcomeDeclaration": "defaultValue?",
    "defaultValue": "value+",
    "itemBody": "(p|pre|choiceInteraction|orderInteraction|matchInteraction"
    "|extendedTextInteraction)+",
    "choiceInteraction": "prompt? simpleChoice+",
    "orderInteraction": "prompt? simpleChoice+",
    "matchInteraction": "prompt? simpleMatchSet simpleMatchSet",
    "simpleMatchSet": "simpleAssociableChoice+",
    "responseProcessing": "(responseCondition|setOutcomeValue)*",
    "responseCondition": "responseIf responseElseIf* responseElse?",
    "responseIf": "(match|equal|or|member|stringMatch) (setOutcomeValue)+",
    "setOutcomeValue": "(baseValue|variable|mapResponse|multiple)",
    "assessmentTest": "outcomeDeclaration* testPart+",
    "testPart": "assessmentSection+",
    "assessmentSection": "assessmentItemRef+",
}
NEEDED = {
    "assessmentItem": {"identifier", "title", "adaptive", "timeDependent"},
    "responseDeclaration": {"identifier", "cardinality", "baseType"},
    "outcomeDeclaration": {"identifier", "cardinality"},
    "mapping": {"defaultValue"},
    "mapEntry": {"mapKey", "mappedValue"},
    "choiceInteraction": {"responseIdentifier", "shuffle", "maxChoices"},
    "orderInteraction": {"responseIdentifier", "shuffle"},
    "matchInteraction": {"responseIdentifier", "shuffle", "maxAssociations"},
    "textEntryInteraction": {"responseIdentifier"},
    "extendedTextInteraction": {"responseIdentifier"},
    "simpleChoice": {"identifier"},
    "simpleAssociableChoice": {"identifier", "matchMax"},
    "equal": {"toleranceMode"},
    "stringMatch": {"caseSensitive"},
    "baseValue": {"baseType"},
    "modalFeedback": {"outcomeIdentifier", "identifier", "showHide"},
    "assessmentTest": {"identifier", "title"},
    "testPart": {"identifier", "navigationMode", "submissionMode"},
    "assessmentSection": {"identifier", "title", "visible"},
    "assessmentItemRef": {"identifier", "href"},
}
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


def _check(element: ET.Element) -> None:
    tag = element.tag.removeprefix(QTI)
    assert NEEDED.get(tag, set()) <= {*element.keys()}, f"{tag}: {element.attrib}"
    assert NAME.fullmatch(element.get("identifier", "a")), element.attrib
    if tag in CHILDREN:
        rule = re.sub(r"\b[A-Za-z]+\b", r"(?:\g<0>,)", CHILDREN[tag]).replace(" ", "")
        names = "".join(f"{each.tag.removeprefix(QTI)}," for each in element)
        assert re.fullmatch(rule, names), f"{tag}: {names}"
    if tag in ("p", "pre", "code", "a", "simpleChoice", "simpleAssociableChoice"):
        inline = {"code", "a", "textEntryInteraction"}
        assert {each.tag.removeprefix(QTI) for each in element} <= inline
    for each in element:
        _check(each)


def test_package_is_what_its_schemas_ask_for():
    told = [portable(SPANISH, name, 0) for name in SPANISH.questions]
    questions = [each.spoken("es", say_in("es")) for each in told]
    assert {each.words for each in questions} == {"Palabras"}
    questions += [portable(SAMPLE, name, 0) for name in SAMPLE.questions]
    files = quiz_qti.package(questions, "all of them")
    roots = {name: ET.fromstring(data) for name, data in files.items()}
    manifest = roots.pop("imsmanifest.xml")
    ims = f"{{{quiz_qti.PACKAGE}}}"
    assert [each.tag for each in manifest] == [
        f"{ims}{name}" for name in ("metadata", "organizations", "resources")
    ]
    resources = {each.get("href"): each for each in manifest.iter(f"{ims}resource")}
    assert set(resources) == set(roots)
    names = {each.get("identifier") for each in resources.values()}
    needed = {each.get("identifierref") for each in manifest.iter(f"{ims}dependency")}
    assert needed == names - {"test"}
    asked = roots["test.xml"].iter(f"{QTI}assessmentItemRef")
    assert {each.get("href") for each in asked} == set(roots) - {"test.xml"}
    for name, root in roots.items():
        _check(root)
        if name != "test.xml":
            _check_names(root)


def _check_names(item: ET.Element) -> None:
    """Whatever is named is declared, and a key is among what can be answered."""
    declared = {
        each.get("identifier")
        for kind in ("responseDeclaration", "outcomeDeclaration")
        for each in item.iter(f"{QTI}{kind}")
    }
    for tag in ("variable", "correct", "mapResponse", "setOutcomeValue"):
        assert {each.get("identifier") for each in item.iter(f"{QTI}{tag}")} <= declared
    choices = {
        each.get("identifier")
        for tag in ("simpleChoice", "simpleAssociableChoice")
        for each in item.iter(f"{QTI}{tag}")
    }
    [response] = item.iter(f"{QTI}responseDeclaration")
    values = [each.text or "" for each in response.iter(f"{QTI}value")]
    if response.get("baseType") in ("identifier", "directedPair"):
        assert {part for value in values for part in value.split()} <= choices
        assert values
    if response.get("baseType") == "float":
        assert float(values[0]) is not None
    told = [each.get("identifier") for each in item.iter(f"{QTI}modalFeedback")]
    assert len(told) == len({*told}) and "SOLUTION" in told


@given(TEXTS)
def test_any_text_is_whole_in_its_item(text):
    base = portable(SAMPLE, "pick", 0)
    odd = f"{text}\x00`<b>&`"
    question = replace(base, prompt=replace(base.prompt, prompt=odd))
    [data] = [
        data
        for name, data in quiz_qti.package([question], "t").items()
        if name.startswith("items/")
    ]
    stem = next(ET.fromstring(data).iter(f"{QTI}p"))
    expected = re.sub(r"`([^`]+)`", r"\1", odd.replace("\x00", "\ufffd"))
    assert "".join(stem.itertext()) == expected

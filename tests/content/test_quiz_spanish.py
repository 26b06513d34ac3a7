"""The Spanish of questions: with the formulas of the English, and marked where none."""

import re
from functools import partial

import pytest
from msgspec import json
from msgspec.structs import replace

from readerkit.app.interface_translation import read_words
from readerkit.app.quiz_banks import QuizBanks
from readerkit.content.translations import (
    TranslatedBank,
    TranslatedQuestion,
    TranslatedTitle,
    english_stamp,
)
from readerkit.model.language import InBoth, said
from readerkit.quiz.hints import hints
from readerkit.quiz.kinds.short import AskedShort
from readerkit.quiz.page_key import Asked, PageKey
from tests.helpers import ROOT
from tests.readerkit.quiz.sample import sample_bank


def test_translated_questions_are_asked_by_the_same_keys():
    banks = QuizBanks(ROOT)
    english, spanish = banks.bank(35), banks.bank(35, language="es")
    for name in banks.translations(35):
        for seed in range(3):
            asked = spanish.variant(name, seed)
            assert asked.grade(asked.typed_key).is_right, name
            assert asked.prompt.prompt != english.variant(name, seed).prompt.prompt
            if isinstance(asked, AskedShort):
                assert asked.problem() == "", name


def told(variant, seed, question, say):
    """Return all that a variant says, but to letters and cells that are typed."""
    remarks = []
    PageKey.of(Asked(question, seed, 1, variant), remarks)
    texts = [variant.prompt, variant.told, [*hints(variant)]]
    said_at_all = json.encode(texts, enc_hook=lambda text: said(text, say))
    return json.decode(said_at_all), {said(each.text, say) for each in remarks}


def test_a_page_has_beside_the_english_what_the_terminal_says_in_spanish():
    banks = QuizBanks(ROOT)
    english, spanish = banks.bank(35), banks.bank(35, language="es")
    both, say = banks.bank(35, in_both=True).shared(), read_words().all
    for name, question in both.questions.items():
        seed = 1
        of = [each.variant(name, seed) for each in (english, spanish, both)]
        in_spanish = partial(told, seed=seed, question=question)
        phrases = lambda phrase: say.get(phrase, phrase)  # noqa: E731
        assert in_spanish(of[2], say=phrases) == in_spanish(of[1], say=phrases), name
        assert of[2].prompt == of[0].prompt
        for asked in of:
            assert of[2].grade(asked.typed_key).is_right, name


def test_every_title_around_the_questions_has_its_spanish():
    banks = QuizBanks(ROOT)
    english, both = banks.bank(35), banks.bank(35, in_both=True)
    in_both = {each.title for each in both.objectives.values()}
    in_both |= {place.title for place in both.lock.places.values() if place.note}
    assert all(isinstance(title, InBoth) for title in [both.rules.title, *in_both])
    spanish = banks.bank(35, language="es")
    told = [spanish.rules.title, *(each.title for each in spanish.objectives.values())]
    told += [place.title for place in spanish.lock.places.values() if place.note]
    assert not [title for title in told if title.other.startswith("[en]")]
    assert spanish.objectives.keys() == english.objectives.keys()
    topics = [both.topic_title(topic) for topic in both.topics()]
    assert all(isinstance(title, InBoth) for title in topics)


def test_a_title_of_another_english_is_marked():
    bank = sample_bank()
    title = TranslatedTitle(of="title-00000000", title="Calcular la memoria")
    fresh = english_stamp(bank.objectives["one"], ["title"])
    for of, shown in ((title.of, "[en] "), (fresh, "Calcular")):
        titles = TranslatedBank(TranslatedTitle(), {"one": replace(title, of=of)})
        told = bank.in_spanish({}, titles, in_both=False)
        assert told.objectives["one"].title.other.startswith(shown)
        assert told.rules.title.other == f"[en] {bank.rules.title}"
        notes = [place for place in told.lock.places.values() if place.note]
        assert notes and all(note.title.other[:5] == "[en] " for note in notes)
        paired = bank.in_spanish({}, titles, in_both=True)
        assert paired.objectives["one"] == bank.objectives["one"]


OTHER_WORDS = {
    r"etapas?": "stage",
    r"(micro|mini)lotes?": "microbatch",
    r"puntos? de control": "checkpoint",
    r"intercala\w*": "entrelazado",
    r"planificaci(ón|ones)": "schedule",
    r"cubos?": "bucket",
    r"por omisión": "por defecto",
    r"colocaci(ón|ones)": "placement",
    r"envoltorios?": "wrapper",
}
"""What is said otherwise: one word for a thing, in notes, questions and messages."""


def test_one_word_stands_for_each_thing():
    files = [*ROOT.glob("annotations/**/*.es.yaml"), *ROOT.glob("quizzes/35/*.es.yaml")]
    files += [ROOT / "site/words.es.yaml", *ROOT.glob("site/pages/**/*.es.*")]
    assert len(files) > 40
    wrong = re.compile(rf"\b({'|'.join(OTHER_WORDS)})\b", re.IGNORECASE)
    found = [
        f"{path.relative_to(ROOT)}:{number}: {match[0]}"
        for path in files
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        for match in wrong.finditer(line)
    ]
    assert found == []


QUESTION = sample_bank().questions["bytes"]
WRITTEN = TranslatedQuestion(
    of=QUESTION.stamp,
    prompt="{p} mil millones",
    explanation="Son {16 * p} GB.",
    rest=tuple("falta" for _ in QUESTION.rest),
)


@pytest.mark.parametrize(
    ("stale", "prompt", "explanation"),
    [
        ("", "7 mil millones", "Son 112 GB."),
        ("explanation", "7 mil millones", "[en] "),
        ("rest", "[en] ", "Son 112 GB."),
        ("prompt", "[en] ", "Son 112 GB."),
    ],
)
def test_what_was_of_another_english_is_asked_in_english(stale, prompt, explanation):
    marks = (
        f"{stale}-00000000" if part.startswith(f"{stale}-") and stale else part
        for part in QUESTION.stamp.split()
    )
    told = TranslatedQuestion(
        of=" ".join(marks),
        prompt=WRITTEN.prompt,
        explanation=WRITTEN.explanation,
        rest=WRITTEN.rest,
    )
    bank = sample_bank()
    bank.words.update({"bytes": QUESTION.spoken(told)})
    asked = bank.variant("bytes", 0)
    assert asked.prompt.prompt.startswith(prompt)
    assert asked.told.explanation.startswith(explanation)


@pytest.mark.parametrize(
    ("prompt", "rest", "said"),
    [
        ("{q} mil millones", WRITTEN.rest, "other formulas in braces"),
        ("mil millones", WRITTEN.rest, "other formulas in braces"),
        (WRITTEN.prompt, (), "'rest' has 0 texts"),
    ],
)
def test_translation_keeps_formulas_and_texts(prompt, rest, said):
    english = TranslatedQuestion(
        prompt=QUESTION.prompt, explanation=QUESTION.explanation, rest=QUESTION.rest
    )
    told = TranslatedQuestion(prompt=prompt, rest=rest)
    assert said in " ".join(told.faults(english))

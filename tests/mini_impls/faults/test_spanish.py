"""The faults in Spanish: all of them, in their order, with their numbers and code."""

import json
import re

import pytest
from msgspec.structs import replace

from mini_impls.faults.__main__ import main
from mini_impls.faults.fault import USUAL, read_faults
from mini_impls.faults.spanish import in_language, read_spanish, stamp
from mini_impls.faults.symptoms import MEASURES, SYMPTOMS
from readerkit.app.interface_translation import read_words
from tests.content.test_quiz_spanish import OTHER_WORDS
from tests.content.test_translations import changed
from tests.helpers import ROOT

FAULTS = {fault.key: fault for fault in read_faults()}
SPANISH = read_spanish()


def test_sidecar_has_the_faults_in_their_order():
    assert list(SPANISH) == list(FAULTS)


@pytest.mark.parametrize("key", FAULTS)
def test_spanish_fault_is_whole_and_keeps_what_the_english_of_today_says(key):
    fault, spanish = FAULTS[key], SPANISH[key]
    assert spanish.of == stamp(fault), f"once it says the same: {stamp(fault)}"
    own = [choice.own_text for choice in fault.choices if choice.own_text]
    pairs = [(fault.title, spanish.title), (fault.why, spanish.why)]
    for english, other in (*pairs, *zip(own, spanish.choices, strict=True)):
        assert changed(english, other) == []


def test_what_all_faults_say_is_said_in_spanish_too():
    words = read_words().phrases
    signs = [symptom.sign for symptom in SYMPTOMS.values()]
    assert {*USUAL.values(), *signs, *MEASURES} <= words.keys()


def test_one_word_stands_for_each_thing():
    text = (ROOT / "mini_impls/faults/faults.es.yaml").read_text("utf-8")
    wrong = re.compile(rf"\b({'|'.join(OTHER_WORDS)})\b", re.IGNORECASE)
    assert wrong.findall(text) == []


def test_what_was_of_another_english_is_said_in_english():
    fault = FAULTS["ddp/no-overlap"]
    (now,) = in_language([fault], "es")
    assert now.title == SPANISH[fault.key].title
    assert now.choices[0].text != fault.choices[0].text
    (changed_title,) = in_language([replace(fault, title="another")], "es")
    assert changed_title.title == "[en] another"
    assert changed_title.why == now.why
    (unknown,) = in_language([replace(fault, name="new")], "es")
    assert unknown.why == f"[en] {fault.why}"
    assert in_language([fault], "en") == (fault,)


def test_the_list_is_in_spanish_and_so_is_json(capsys):
    assert main(["zero", "--lang", "es"]) == 0
    [first, *_] = capsys.readouterr().out.splitlines()
    assert first.endswith(SPANISH["zero/unsharded-state"].title)
    assert main(["zero", "--lang", "es", "--json"]) == 0
    [row, *_] = json.loads(capsys.readouterr().out)
    assert row["title"] == SPANISH["zero/unsharded-state"].title


@pytest.mark.slow
def test_a_fault_is_asked_shown_and_explained_in_spanish(capfd, real_cache):
    argv = ["schedules", "one-more-warm-up", "--predict", "4", "--lang", "es"]
    assert main(argv) == 0
    out = " ".join(capfd.readouterr().out.split())
    spanish = SPANISH["schedules/one-more-warm-up"]
    english = FAULTS["schedules/one-more-warm-up"]
    for text in (
        spanish.title,
        *spanish.choices,
        spanish.why,
        "¿Qué pasará?",
        "microbatches en vuelo 2 1 con el fallo 3 2",
        f"Se ve: 3 {spanish.choices[2]}",
        "Usted dijo 4: no es así.",
        "Las líneas que protegen de ello",
    ):
        assert text in out
    for text in (english.title, english.why, "with the fault", "What", "measured"):
        assert text not in out
    assert main([*argv, "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert found["why"] == spanish.why
    assert found["why_not"].startswith("sería ninguna medida que difiera")

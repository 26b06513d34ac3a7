"""What records and estimates say in Spanish, part by part."""

from __future__ import annotations

import json
import re

import pytest

from readerkit.app.interface_translation import read_words, say_of_estimates
from readerkit.app.page_estimates import work_out
from readerkit.app.page_estimates_script import known_names
from readerkit.estimate.instrument import answers
from readerkit.model.told_parts import in_parts
from readerkit.render.html.words import Words, both
from tests.browser.test_instrument import draw
from tests.helpers import ROOT, run

PARTS = ("records", "conventions")


@pytest.mark.parametrize("part", PARTS)
def test_a_part_has_as_many_numbers_in_spanish(part):
    words = getattr(read_words(), part)
    assert len(words) > 150
    assert [k for k, v in words.items() if k.count("{}") != v.count("{}")] == []


@pytest.mark.parametrize(
    ("text", "spanish"),
    [
        ("4 B x 102,016 gradients, each once", "4 B x 102,016 gradientes, cada uno"),
        ("(8 + 2 activations) x 4 B", "(8 + 2 activaciones) x 4 B"),
        ("-3.5 x 7", "-3.5 x 7"),
        ("fp32-16", "fp32-16"),
        ("4 B x 102,016 gradients, each twice", ""),
        ("gradients", ""),
    ],
)
def test_a_text_is_told_where_all_its_parts_are_known(text, spanish):
    words = {"{} gradients, each once": "{} gradientes, cada uno"}
    words |= {"{} activations": "{} activaciones", "{} B": "{} B"}
    assert in_parts(text, words) == spanish


def texts_of_records() -> set[str]:
    texts = set()
    for path in (ROOT / "annotations" / "records").glob("*.json"):
        record = json.loads(path.read_text())
        for verdict in record["verdicts"]:
            texts |= {verdict["what"], verdict["what"] + ", rank 1"}
            texts |= set() if verdict.get("mirror") else {verdict["reason"]}
        for limit in record["limits"]:
            texts |= {limit["what"], limit["why"]}
        texts |= {each["reason"] for each in record["shims"]}
        texts |= {each["formula"] for each in record["totals"]}
    return texts - {""}


def texts_of_estimates() -> set[str]:
    examples = work_out()
    groups = [*examples.memory, *examples.traffic, *examples.runs, *examples.more]
    groups += [examples.bubbles, examples.ring, examples.tools, examples.best]
    texts = {group.title for group in groups}
    for worked in (each for group in groups for each in group.worked):
        estimate = worked.estimate
        texts |= {estimate.title, *estimate.notes}
        texts |= {item.convention for item in estimate.items}
    return texts - {""}


def test_what_records_and_estimates_say_has_its_spanish():
    """A new record may say something new; a page marks it until it is told here."""
    records, estimates = texts_of_records(), texts_of_estimates()
    words, say = read_words(), say_of_estimates("es")
    assert len(records) > 200 and len(estimates) > 200
    untold = [each for each in records if not in_parts(each, words.records)]
    assert len(untold) <= len(records) / 20, sorted(untold)
    same = {each for each in estimates if say(each) == each and " " in each}
    untold = [each for each in same if not in_parts(each, words.conventions)]
    assert len(untold) <= len(estimates) / 50, sorted(untold)


def test_what_a_setting_is_refused_for_has_its_spanish():
    known, words = known_names(), read_words().conventions
    settings = draw(150, seed=3)
    answered = [each for dials in settings for each in answers(dials, known)]
    lines = {line for each in answered for line in each.refusal.splitlines()}
    assert len(lines) > 50
    assert [line for line in sorted(lines) if not in_parts(line, words)] == []


def test_a_plan_is_told_in_spanish(capsys):
    asked = ("estimate", "plan", "--model", "llama-2-70b", "--gpus", "64")
    told = run(capsys, *asked, "--lang", "es").out.replace("\n  ", " ")
    assert "layers: se dio 80 con pp 32" in told
    assert "Se supone: kernels al 60%" in told
    assert "pesos bf16" in told and "la atención causal como la mitad" in told
    for english in ("variants", "Assumed", "expected", "weights", "kept"):
        assert english not in told


def test_a_text_without_spanish_is_marked_and_one_alike_stands_once():
    words = Words(records={"{} losses": "{} pérdidas", "{} B": "{} B"})
    told = both(words.of_record("3 losses"))
    assert re.findall(r"lang=(\w+)>([^<]+)<", told) == [
        ("en", "3 losses"),
        ("es", "3 pérdidas"),
    ]
    assert both(words.of_record("4 B")) == "4 B"
    assert both(words.of_record("3 tests")) == '<span lang="en">3 tests</span>'
    paired = words.of_record("3 losses", "4 B", form="{} ({})")
    assert paired.es == "3 pérdidas (4 B)"

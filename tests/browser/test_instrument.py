"""The estimates' page as an instrument: what it says is what the commands say.

Whatever a command prints as JSON is compared to the last digit: values, formulas with
their numbers, conventions, notes; and whatever it refuses, in its words.
"""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from playwright.sync_api import expect

from readerkit.app.page_estimates_script import known_names
from readerkit.estimate.instrument import Dials
from readerkit.estimate.schedules import SOURCES
from readerkit.estimate.states import PRECISIONS
from tests.browser.barriers import barriers
from tests.browser.test_pages import overflow
from tests.helpers import run

ASK = """settings => {
    const $ = readerkitPython, ours = $.ours;
    const known = new ours.Shipped(
        $.known.get("models"), $.known.get("gpus"), $.known.get("clusters"));
    const plain = x => Array.isArray(x) ? x.map(plain)
        : x instanceof $.Dict
            ? Object.fromEntries(x.items().map(([key, each]) => [key, plain(each)]))
        : typeof x === "bigint" || typeof x === "number" ? {number: $.str(x)} : x;
    const taken = x => typeof x === "number" ? BigInt(x) : x;
    return settings.map(each =>
        ours.answers(new ours.Dials(...each.map(taken)), known).map(answer => ({
            command: answer.command,
            refusal: answer.refusal,
            estimates: answer.estimates.map(one => plain(one.to_plain())),
        })));
}"""


def draw(count: int, seed: int) -> list[Dials]:
    """Return settings of which many can be and many cannot."""
    known, chance = known_names(), random.Random(seed)
    pick = chance.choice
    found = []
    for _ in range(count):
        cluster = pick(sorted(known.clusters))
        schedule = pick(("1f1b",) * 16 + tuple(SOURCES))
        chunks = pick((2, 2, 4)) if "interleaved" in schedule else 1
        found.append(
            Dials(
                model=pick(sorted(known.models)),
                gpu=str(known.clusters[cluster]["gpu"]),
                cluster=cluster,
                dp=pick((1, 2, 4, 8, 8, 16, 64, 3)),
                tp=pick((1, 1, 2, 2, 4, 8, 8, 5)),
                pp=pick((1, 1, 1, 1, 2, 2, 4, 8)),
                cp=pick((1, 1, 1, 1, 1, 2, 4)),
                ep=pick((1, 1, 1, 1, 1, 2, 8)),
                zero=pick((0, 1, 1, 2, 3)),
                micro_batch=pick((1, 1, 2, 4)),
                microbatches=pick((8, 16, 32, 64, 7)),
                sequence=pick((None, None, None, 1024, 2048, 8192, 1000)),
                virtual_stages=chunks if chance.random() < 0.97 else 3,
                schedule=schedule,
                recompute=pick(("none", "none", "selective", "full")),
                precision=pick(("mixed-18",) * 4 + tuple(PRECISIONS)),
                sequence_parallel=pick((True, True, True, False)),
                flash=pick((True, True, False)),
            )
        )
    return found


def exactly(value: Any) -> Any:
    """Return a number as text with all its digits; whole ones and floats differ."""
    if isinstance(value, dict):
        return {key: exactly(each) for key, each in value.items()}
    if isinstance(value, list):
        return [exactly(each) for each in value]
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return {"number": repr(value)} if is_number else value


def compare(page, capsys, settings) -> tuple[int, int]:
    """Hold the page against the commands; return what was answered, and refused."""
    told = page.evaluate(ASK, [list(each) for each in settings])
    answered = refused = 0
    for setting, answers in zip(settings, told, strict=True):
        assert len(answers) == 4
        for answer in answers:
            words = answer["command"].split()
            assert words[0] == "readerkit"
            result = run(capsys, *words[1:], "--json")
            if answer["refusal"]:
                refused += 1
                assert result.err.strip().endswith(answer["refusal"]), setting
                assert (result.code, result.out) == (2, "")
                continue
            answered += 1
            printed = json.loads(result.out)["estimates"]
            assert answer["estimates"] == exactly(printed), (setting, words)
    return answered, refused


@pytest.fixture
def instrument(small_site, open_page):
    return open_page(f"file://{small_site}/estimates.html")


def test_the_page_says_what_the_commands_say(instrument, capsys):
    answered, refused = compare(instrument, capsys, draw(20, seed=1))
    assert answered > 20 and refused > 5


@pytest.mark.slow
def test_five_hundred_settings_come_to_the_same(instrument, capsys):
    answered, refused = compare(instrument, capsys, draw(500, seed=16))
    assert answered > 800 and refused > 300


def rows(page, question):
    return page.locator(f'[data-question="{question}"] .number')


def test_a_setting_is_answered_and_is_an_address(instrument, small_site, open_page):
    page = instrument
    expect(page.locator("#said-of-it")).to_contain_text("fits: ")
    page.get_by_label("dp data-parallel ranks").fill("4")
    page.get_by_label("ZeRO stage").select_option("3")
    page.get_by_label("flash attention").uncheck()
    wanted = "#model=llama-2-7b&dp=4&zero=3&microbatches=8&flash=false"
    page.wait_for_function("wanted => location.hash === wanted", arg=wanted)
    expect(page.locator('[data-question="memory"] .command code')).to_have_text(
        "readerkit estimate memory --model llama-2-7b --gpu h100-80gb --dp 4 --zero 3 "
        "--microbatches 8 --no-flash"
    )
    answers = page.locator("#answers")
    other = open_page(f"file://{small_site}/estimates.html{wanted}")
    shown = other.locator("#answers")
    expect(shown).to_have_text(answers.text_content())
    expect(shown).to_have_text(answers.inner_text(), use_inner_text=True)
    expect(other.get_by_label("flash attention")).not_to_be_checked()


def test_a_refusal_is_the_commands(instrument, capsys):
    page = instrument
    page.get_by_label("tp tensor-parallel ranks").fill("3")
    refused = page.locator('[data-question="memory"] .refused')
    expect(refused).to_contain_text("expected a divisor of 32 (heads)")
    result = run(capsys, "estimate", "memory", "--model", "llama-2-7b", "--tp", "3")
    assert refused.inner_text() in result.err
    page.get_by_label("tp tensor-parallel ranks").fill("0")
    expect(refused).to_have_text("tp: got 0, expected at least 1")
    page.wait_for_function("() => location.hash.includes('tp=0')")
    page.get_by_label("tp tensor-parallel ranks").fill("1.5")
    expect(page.locator("#not-whole")).to_be_visible()
    expect(page.locator("#answers")).to_be_hidden()  # they are of another setting
    page.get_by_label("tp tensor-parallel ranks").fill("2")
    expect(page.locator("#answers")).to_be_visible()
    expect(page.locator("#not-whole")).to_be_hidden()
    expect(page.locator('[data-question="memory"] .refused')).to_have_count(0)


def test_a_number_opens_to_its_formula_and_stays_open(instrument):
    page = instrument
    row = rows(page, "memory").filter(has_text="weights").first
    row.locator("summary").click()
    expect(row).to_contain_text("w × parameters on the GPU")
    page.get_by_label("dp data-parallel ranks").fill("2")
    row = rows(page, "memory").filter(has_text="weights").first
    expect(row).to_have_attribute("open", "")
    expect(row).to_contain_text("2 × 6738415616")


def test_a_row_stays_the_same_while_its_number_changes(instrument):
    page = instrument
    row = rows(page, "memory").filter(has_text="weights").first
    row.evaluate("row => { row.isTheSame = true; }")
    before = row.locator(".n").inner_text()
    for tp in ("2", "4"):
        page.get_by_label("tp tensor-parallel ranks").fill(tp)
    row = rows(page, "memory").filter(has_text="weights").first
    assert row.locator(".n").inner_text() != before
    assert row.evaluate("row => row.isTheSame")
    page.get_by_label("tp tensor-parallel ranks").fill("3")  # refused: its list is gone
    expect(rows(page, "memory").filter(has_text="weights")).to_have_count(0)
    page.get_by_label("tp tensor-parallel ranks").fill("1")
    expect(rows(page, "memory").filter(has_text="weights").first).to_be_visible()


def test_in_spanish_names_are_spanish(instrument):
    page = instrument
    page.locator("#lang-es + label").click()
    expect(rows(page, "memory").filter(has_text="activaciones").first).to_be_visible()
    expect(page.get_by_role("heading", name="Pregúntelo usted")).to_be_visible()


def test_a_refusal_is_told_in_spanish(instrument):
    page = instrument
    page.locator("#lang-es + label").click()
    refused = page.locator('[data-question="memory"] .refused')
    for tp, told in (
        ("3", "se espera un divisor de 32 (cabezas)"),
        ("0", "al menos 1"),
    ):
        page.locator("#set-tp").fill(tp)
        expect(refused).to_contain_text(told)
        expect(refused).to_have_attribute("lang", "es")
        expect(page.locator("#said-of-it")).to_contain_text(told)


def test_a_gpu_brings_its_cluster(instrument):
    page = instrument
    page.locator("#set-gpu").select_option("h200")
    expect(page.locator("#set-cluster")).to_have_value("dgx-h200")
    page.locator("#set-gpu").select_option("t4")
    expect(page.locator("#set-cluster")).to_have_value("")
    expect(page.locator('[data-question="step"]')).to_be_hidden()


@pytest.mark.further
def test_the_instrument_has_no_barrier_and_fits_its_screen(instrument):
    page = instrument
    rows(page, "memory").nth(8).locator("summary").click()
    for width, rules in ((1440, ("scrollable-region-focusable",)), (390, ())):
        page.set_viewport_size({"width": width, "height": 900})
        assert overflow(page) == 0
        assert barriers(page, *rules) == ""

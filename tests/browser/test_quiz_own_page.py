"""A site of the reader's own asks about their ledger, from disk too."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import expect

from readerkit.app.folders import open_ledger
from readerkit.app.quiz_banks import QuizBanks, open_history
from readerkit.budget import Ceilings
from tests.helpers import run_process
from tests.readerkit.budget.jobs import job
from tests.readerkit.quiz.sample import QUESTIONS
from tests.served_quiz import make_quiz_book

OWN = """\
- id: own-rate
  type: numeric
  objective: two
  concepts: [collectives]
  difficulty: 1
  prompt: "Your {n} runs cost ${p}: how much is one, in $?"
  parameters:
    n: {own: ledger.runs, choose: [3, 5]}
    p: {own: ledger.paid_usd, choose: [0.9, 1.3]}
  again: "p * (1 / n)"
  answer: {value: p / n, unit: $, relative: 0.02}
  misconceptions:
    - {value: n / p, says: "Upside down: runs for a dollar."}
  explanation: "${p} over {n}."
  references: [{key: paper, section: "3"}]
- id: own-wire
  type: numeric
  objective: two
  concepts: [collectives]
  difficulty: 1
  prompt: "Your comparison sent {p} bytes: how many is half?"
  parameters:
    p: {own: ddp.payload_bytes, choose: [400, 800]}
  again: "p - p / 2"
  answer: {value: p / 2}
  misconceptions:
    - {value: p, says: "That is all of it."}
  explanation: "Half of {p}."
  references: [{key: paper, section: "3"}]
"""
SAVED = "readerkit-quiz-7.json"


@pytest.fixture
def build(browser, tmp_path, monkeypatch):
    """Build the site of a bank with questions on a ledger; it is given here."""
    monkeypatch.setenv("READERKIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("READERKIT_DATA", str(tmp_path / "data"))
    book = make_quiz_book(tmp_path, QUESTIONS + OWN)
    where = ("--book", str(book.root))

    def built(*options):
        site = tmp_path / "site"
        done = run_process("site", "build", "--output", str(site), *where, *options)
        assert done.code == 0, done.err
        return f"file://{site}/quiz/7", done.out

    return built, where, book


def spend(*runs):
    """Settle runs of so many cents in the ledger of this user."""
    ledger = open_ledger()
    if not ledger.path.exists():
        ledger.create(Ceilings())
    for cents in runs:
        entry = ledger.reserve(job(2 * cents), "true")
        ledger.settle(entry, cents, seconds=600, exit_code=0)


@pytest.mark.further
def test_own_figures_are_asked_marked_and_kept(build, open_page, tmp_path):
    built, where, book = build
    spend(60, 50)
    address, _ = built("--own")
    page = open_page(f"{address}/all.html")
    expect(page.locator(".quiz-page")).to_contain_text("not to be published")
    asked = page.locator("#q-own-rate .question:visible")
    expect(asked.locator(".prompt")).to_contain_text("Your 2 runs cost $1.10:")
    field = asked.get_by_label("Your answer")
    for typed, said in (("1.82", "Upside down"), ("0.55 $", "Right. Points: 0.5")):
        field.fill(typed)
        field.press("Enter")
        box = asked.locator(".feedback")
        expect(box).to_contain_text(said, use_inner_text=True)
    expect(page.locator("#q-own-wire")).to_have_count(0)  # nothing was compared yet
    other = page.locator("#q-bytes .question:visible")  # of another quiz: no figures
    other.get_by_label("Your answer").fill("112 GB")
    other.get_by_label("Your answer").press("Enter")
    expect(other.locator(".feedback .right")).to_be_visible()
    page.reload()
    expect(page.locator(".question.done:visible")).to_have_count(2)
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save them as a file").click()
    saved.value.save_as(tmp_path / SAVED)
    spend(90)  # the question stays what it was
    imported = run_process("quiz", "import", "--json", str(tmp_path / SAVED), *where)
    assert json.loads(imported.out)["differing"] == [], imported.err
    history = open_history()
    figures = {each.questions: each.figures for each in history.sessions()}
    mine = {"ledger.runs": 2, "ledger.paid_usd": 1.1}
    assert figures == {("own-rate",): mine, ("bytes",): {}}
    variant = QuizBanks(book.root).bank(7).variant("own-rate", 0, mine)
    assert {a.credit for a in history.answers() if a.question == "own-rate"} == {0, 1}
    assert variant.grade("0.55").is_right


@pytest.mark.further
def test_a_site_for_others_asks_nothing_of_ones_own(build, open_page):
    built, *_ = build
    spend(60)
    address, _ = built("--own")
    _, said = built("--own")
    assert "nothing changed" in said
    spend(50)
    assert "figures of your own" in built("--own")[1]
    address, said = built()
    assert "figures of your own" in said
    page = open_page(f"{address}/all.html")
    expect(page.locator("#q-bytes")).to_be_visible()
    expect(page.locator("#q-own-rate")).to_have_count(0)
    page.goto(f"{address}.html")
    expect(page.get_by_text("readerkit site build --own")).to_be_visible()

"""Pages of topics, from disk: every kind is answered, marked, kept and saved."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import expect

from readerkit.app.library import open_library
from readerkit.app.quiz_banks import QuizBanks, open_history
from readerkit.quiz.hints import hints
from readerkit.site.build import BuildCache, make_site
from readerkit.site.inputs import find_inputs
from readerkit.site.publish import publish
from tests.browser.barriers import barriers
from tests.browser.test_pages import overflow
from tests.helpers import run_process
from tests.quick import quick_first
from tests.served_quiz import fill_in, make_quiz_book

SAVED = "readerkit-quiz-7.json"
WRONG = {"bytes": "84 GB", "gap": "no_grad", "line": "12", "row": "B0 B0 B0"}


@pytest.fixture(scope="module")
def made(browser, tmp_path_factory):
    """The sample bank, the page of its questions, and how a command names its book."""
    folder = tmp_path_factory.mktemp("topic")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("READERKIT_CACHE", str(folder / "cache"))
        patch.setenv("READERKIT_DATA", str(folder / "data"))
        book = make_quiz_book(folder)
        library, inputs = open_library(book.root, quiet=True), find_inputs(book.root)
        files = make_site(library, inputs, BuildCache())
        publish(folder / "site", {at: make() for at, make in files.items()}, "")
        bank = QuizBanks(book.root).bank(7)
    return bank, f"file://{folder}/site/quiz/7/all.html", ("--book", str(book.root))


def asked_first(bank):
    """Return the first variant of each question of a page."""
    return {name: bank.variant(name, 0) for name in bank.questions}


def question(page, name):
    return page.locator(f"#q-{name} .question:visible")


def answer(page, name, variant, typed=""):
    asked = question(page, name)
    fill_in(asked.locator("form"), variant, typed)
    asked.get_by_role("button", name="Answer").click()
    return asked


@pytest.mark.parametrize("width", quick_first([390, 1280]))
def test_each_kind_is_answered_kept_and_saved(made, open_page, width, tmp_path):
    bank, address, where = made
    page = open_page(address, width=width)
    variants = asked_first(bank)
    for name, variant in variants.items():
        expect(question(page, name).locator(".key")).to_be_hidden()
        asked = answer(page, name, variant)
        expect(asked.locator(".feedback")).to_contain_text(
            "Right. Points: 1", use_inner_text=True
        )
        expect(asked.locator(".key")).to_be_visible()
        expect(asked.locator(".feedback")).to_be_focused()
    assert barriers(page) == ""
    assert overflow(page) == 0
    count = len(variants)
    expect(page.locator(".tally")).to_have_text(f"{count} / {count}")
    page.reload()
    expect(page.locator(".question.done:visible")).to_have_count(count)
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save them as a file").click()
    assert saved.value.suggested_filename == SAVED
    saved.value.save_as(tmp_path / SAVED)
    told = json.loads((tmp_path / SAVED).read_text("utf-8"))
    for row in told["answers"]:
        variant = bank.variant(row["question"], row["seed"])
        assert variant.grade(row["answer"]).credit == row["credit"] == 1
    for added in (count, 0):
        imported = run_process(
            "quiz", "import", "--json", str(tmp_path / SAVED), *where
        )
        assert imported.code == 0, imported.err
        assert json.loads(imported.out)["answers"] == added
    assert {each.question for each in open_history().answers()} == set(variants)
    page.get_by_role("button", name="Forget them here").click()
    expect(page.locator(".kept")).to_be_hidden()
    expect(page.locator(".question.done")).to_have_count(0)


def test_a_wrong_answer_is_refuted_and_may_be_mended_once(made, open_page):
    bank, address, _ = made
    page = open_page(address)
    variants = asked_first(bank)
    for name, typed in WRONG.items():
        asked = answer(page, name, variants[name], typed)
        box = asked.locator(".feedback")
        expect(box).to_contain_text("Not yet.", use_inner_text=True)
        for remark in variants[name].grade(typed).remarks:
            expect(box).to_contain_text(
                remark.text.replace("`", ""), use_inner_text=True
            )
        expect(asked.locator(".key")).to_be_hidden()
        answer(page, name, variants[name])
        expect(box).to_contain_text("Right. Points: 0.5", use_inner_text=True)
    pick = variants["pick"]
    wrong = next(o.label for o in pick.prompt.options if "copy" in o.text)
    proofs = page.locator("#q-pick .claims")
    expect(proofs).to_be_hidden()
    box = answer(page, "pick", pick, wrong).locator(".feedback")
    expect(box).to_contain_text("Nothing is summed.", use_inner_text=True)
    link = box.locator('a[href$="linear.py.html#close"]')
    expect(link.first).to_be_visible()
    answer(page, "pick", pick, wrong)
    expect(box).to_contain_text("Wrong.", use_inner_text=True)
    proofs.locator("summary").click()
    expect(proofs.locator("q")).to_have_text("a reduction")
    expect(proofs.locator("a").first).to_be_visible()
    question(page, "pick").get_by_role("button", name="Another variant").click()
    other = bank.variant("pick", 1)
    expect(question(page, "pick").locator(".prompt")).to_have_text(other.prompt.prompt)
    expect(question(page, "pick").locator("input").first).to_be_focused()
    answer(page, "pick", other)
    expect(question(page, "pick").locator(".feedback")).to_contain_text(
        "Right.", use_inner_text=True
    )


@pytest.mark.parametrize(
    ("language", "said"),
    [("en", "got 'no', expected a number"), ("es", "se leyó «no»")],
)
def test_what_cannot_be_read_costs_nothing(made, open_page, language, said):
    bank, address, _ = made
    page = open_page(address)
    page.locator(f"#lang-{language} + label").click()
    asked = question(page, "bytes")
    asked.locator("input").fill("no")
    asked.locator("input").press("Enter")
    expect(asked.locator(".feedback.warning")).to_contain_text(
        said, use_inner_text=True
    )
    expect(asked.locator("input")).to_be_focused()
    asked.locator("input").fill(bank.variant("bytes", 0).typed_key)
    asked.locator("input").press("Enter")
    expect(asked.locator(".feedback .right .n")).to_have_text("1")


def test_a_line_is_clicked_and_an_order_is_said(made, open_page):
    _, address, _ = made
    page = open_page(address)
    line = question(page, "line")
    line.locator(".to-search .l", has_text="y = all_reduce").click()
    line.get_by_role("button", name="Answer").click()
    expect(line.locator(".feedback")).to_contain_text("Right.", use_inner_text=True)
    steps = question(page, "steps")
    steps.locator("li").nth(2).locator("[data-move='-1']").press("Enter")
    expect(steps.locator("li").nth(1).locator("[data-move='-1']")).to_be_focused()
    expect(steps.locator("[role=status]").first).to_have_text("2 / 4")


def test_ranks_are_clicked_into_groups(site, open_page):
    page = open_page(f"file://{site}/quiz/35/layout.html")
    asked = question(page, "layout-8-groups")
    row = asked.locator("tbody td").first
    for rank, clicks in ((0, 1), (1, 1), (2, 2), (3, 2)):
        for _ in range(clicks):
            row.locator(f"[data-rank='{rank}']").press("Enter")
    field = row.locator("input")
    expect(field).to_have_value("0,1|2,3")
    field.fill("0,1|2,3|4,5|6,7")
    expect(row.locator("[data-rank='5']")).to_have_attribute("aria-label", "rank 5: C")
    row.locator("[data-rank='1']").press("Enter")
    expect(field).to_have_value("0|1,2,3|4,5|6,7")


def test_a_hint_costs_its_part_and_is_kept(made, open_page, tmp_path):
    bank, address, where = made
    page = open_page(address)
    read, step = hints(bank.variant("pick", 0))
    asked = question(page, "pick")
    more = asked.locator("[data-do=hint]")
    expect(more.locator(".n")).to_have_text(f"{read.cost:.0%}")
    more.press("Enter")
    shown = asked.locator(".hints")
    expect(shown.locator("a")).to_have_text(read.place.title)
    expect(more.locator(".n")).to_have_text(f"{step.cost:.0%}")
    page.reload()
    expect(shown.locator("a")).to_have_text(read.place.title)
    more.press("Enter")
    expect(shown).to_contain_text(step.text, use_inner_text=True)
    expect(more).to_be_hidden()
    answer(page, "pick", bank.variant("pick", 0))
    earned = 1 - read.cost - step.cost
    expect(asked.locator(".feedback .right .n")).to_have_text(f"{earned:g}")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save them as a file").click()
    saved.value.save_as(tmp_path / SAVED)
    imported = run_process("quiz", "import", "--json", str(tmp_path / SAVED), *where)
    assert imported.code == 0, imported.err
    session = json.loads((tmp_path / SAVED).read_text("utf-8"))["sessions"][0]["id"]
    history = open_history()
    assert [each.cost for each in history.hints(session)] == [read.cost, step.cost]
    assert [each.hinted for each in history.answers(session)] == [0.5]


def test_without_scripts_a_page_says_what_to_do(made, open_page):
    _, address, _ = made
    page = open_page(address, java_script_enabled=False)
    expect(page.get_by_text("readerkit quiz 7 --topic all")).to_be_visible()
    expect(page.get_by_role("button", name="Answer")).to_have_count(0)
    first = page.locator(".question .solution").first
    first.locator("summary").click()
    expect(first.locator(".key")).to_be_visible()
    folded = page.locator(".question[data-key]").first.get_attribute("data-key")
    assert "Nothing is summed" not in folded

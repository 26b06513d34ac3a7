"""The quiz on the site: turn by turn when served, and where its pages lead."""

from __future__ import annotations

import re
from functools import partial

import pytest
from playwright.sync_api import expect

from readerkit.app.quiz_banks import open_history
from readerkit.quiz.hints import hints
from tests.browser.barriers import barriers
from tests.browser.test_pages import PAINTED, overflow
from tests.quick import quick_first
from tests.served_quiz import fill_in, serving_quiz, typed_key

pytestmark = pytest.mark.sampled


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serving_quiz(tmp_path_factory.mktemp("quiz")) as server:
        yield server


@pytest.fixture
def book(server):
    return server.book


@pytest.fixture
def served(server):
    with server.afresh() as port:
        yield port


NOTE = "read/megatron/megatron/core/tensor_parallel/layers.py.html#tp-row-forward"


def test_a_note_leads_to_its_questions(site, open_page):
    page = open_page(f"file://{site}/{NOTE}")
    asked = page.locator("#tp-row-forward .part", has_text="Questions")
    expect(asked.locator("code").first).to_contain_text("readerkit quiz 35 --topic")
    link = asked.get_by_role("link").first
    name = link.inner_text()
    link.click()
    page.wait_for_url(f"**/quiz/35/*.html#q-{name}")
    shown = page.locator(f"#q-{name} .prompt").first
    expect(shown).to_be_in_viewport()


def test_served_page_marks_explains_and_keeps_answers(book, served, open_page):
    page = open_page(f"http://127.0.0.1:{served}/quiz/7.html")
    page.get_by_label("Questions").fill("10")
    page.get_by_role("button", name="Begin").click()
    expected = {}
    for position in range(1, 11):
        page.get_by_role("heading", name=f"{position} / 10").wait_for()
        variant = typed_key(book)
        expected[variant.prompt.id] = 1.0
        if variant.prompt.kind == "locate":
            page.locator(".to-search .l", has_text="y = all_reduce").click()
        elif variant.prompt.kind == "single":
            read, step = hints(variant)
            for hint in (read, step):
                page.get_by_role(
                    "button", name=f"Hint, it costs {hint.cost:.0%}"
                ).click()
                expect(page.locator("#quiz .hints")).to_contain_text(hint.text)
            wrong = next(o for o in variant.prompt.options if "copy" in o.text)
            page.get_by_label(wrong.text).check()
            page.get_by_role("button", name="Answer").click()
            page.get_by_text("Not yet.").wait_for()
            # The hint may have said the same of it, behind its "Not".
            why = f"{wrong.label}: Nothing is summed."
            expect(page.get_by_text(why, exact=True)).to_be_visible()
            expect(page.get_by_text("Try again, for fewer points.")).to_be_visible()
            expect(page.get_by_label(wrong.text)).to_be_checked()
            expect(page.get_by_label(wrong.text)).to_be_focused()
            refuted = page.locator('.feedback a[href$="linear.py.html#close"]')
            expect(refuted.first).to_be_visible()
            page.get_by_role("button", name="Skip").click()
            expected[variant.prompt.id] = 0.0
        else:
            fill(page, variant)
        if expected[variant.prompt.id]:
            page.get_by_role("button", name="Answer").click()
            page.get_by_text("Right.").wait_for()
        page.locator("#quiz .feedback .key").wait_for()
        expect(page.locator("#quiz .prompt")).to_have_text(
            variant.prompt.prompt, use_inner_text=True
        )
        page.get_by_role("button", name="Go on").click()
    page.get_by_text("passed", exact=True).wait_for()
    expect(page.get_by_role("heading", name="90%")).to_be_visible()
    answers = open_history().answers()
    assert {each.question: each.credit for each in answers} == expected
    assert len(answers) == 11
    expect(page.locator(".self-check")).to_be_hidden()


def test_an_answer_to_be_mended_is_where_one_types(book, served, open_page):
    page = open_page(f"http://127.0.0.1:{served}/quiz/7.html")
    begin_and_skip_to(page, book, "numeric")
    for answer, said in (("no number", ".warning"), ("987654321", ".feedback .wrong")):
        page.get_by_label("Your answer").fill(answer)
        page.get_by_label("Your answer").press("Enter")
        page.locator(f"#quiz {said}").wait_for()
        expect(page.get_by_label("Your answer")).to_be_focused()
        expect(page.get_by_label("Your answer")).to_have_value(answer)
    described = page.get_by_label("Your answer").get_attribute("aria-describedby")
    expect(page.locator(f"#{described}")).to_contain_text("Not yet.")


@pytest.mark.further
def test_a_choice_to_be_mended_is_where_one_goes_on(book, served, open_page):
    page = open_page(f"http://127.0.0.1:{served}/quiz/7.html")
    variant = begin_and_skip_to(page, book, "single")
    # Not the first of the options, where the focus would be without a choice.
    wrong = [o for o in variant.prompt.options if "reduction" not in o.text][-1]
    page.get_by_label(wrong.text).check()
    page.get_by_role("button", name="Answer").click()
    page.get_by_text("Not yet.").wait_for()
    expect(page.get_by_label(wrong.text)).to_be_focused()
    expect(page.get_by_label(wrong.text)).to_be_checked()


def begin_and_skip_to(page, book, kind):
    """Begin, skip until a question of this kind is asked; return its variant."""
    page.get_by_label("Questions").fill("10")
    page.get_by_role("button", name="Begin").click()
    while True:
        page.locator("form.question").wait_for()
        expect(page.locator("#quiz h2")).to_be_focused()
        expect(page.locator("#quiz")).to_contain_text(
            re.compile(r"difficulty [●○]{3}"), use_inner_text=True
        )
        variant = typed_key(book)
        if variant.prompt.kind == kind:
            return variant
        page.get_by_role("button", name="Skip").click()
        page.get_by_role("button", name="Go on").click()


@pytest.mark.further
def test_no_turn_of_the_served_page_has_a_barrier(book, served, open_page):
    page = open_page(f"http://127.0.0.1:{served}/quiz/7.html", width=390)
    page.get_by_role("button", name="Begin").wait_for()
    turns = (("Begin", "form.question"), ("Skip", ".feedback"), ("Go on", "h2"))
    for button, shown in turns:
        assert barriers(page) == ""
        assert overflow(page) == 0
        page.get_by_role("button", name=button).first.click()
        page.locator(f"#quiz {shown}").wait_for()


LOST = "The server cannot be reached."


def fail(status, route):
    """Answer with a fault; without a number, not at all."""
    if status:
        route.fulfill(status=status)
    else:
        route.abort()


@pytest.mark.parametrize("language", ["en", "es"])
def test_a_failure_keeps_the_form_and_is_told_once(book, served, browser, language):
    page = browser.new_page()  # it says itself that something failed
    page.goto(f"http://127.0.0.1:{served}/quiz/7.html")
    begin_and_skip_to(page, book, "numeric")
    page.locator(f"#lang-{language} + label").click()
    answer = page.locator("#quiz input[name=answer]")
    answer.fill("no number")
    told = page.locator("#quiz [role=alert]")
    english, turns = language == "en", "**/-/quiz/7"
    for status in (500, 403, None, 413):
        page.route(turns, partial(fail, status))
        said = LOST if english else "No se alcanza el servidor."
        answer.press("Enter")
        expect(told).to_have_count(1)
        expect(told).to_contain_text(str(status) if status else said)
        expect(told).to_contain_text("again" if english else "de nuevo")
        expect(answer).to_be_focused()
        expect(answer).to_have_value("no number")
        page.unroute(turns)
    answer.fill("987654321")
    answer.press("Enter")
    page.locator("#quiz .feedback .wrong").wait_for()
    expect(told).to_have_count(0)
    page.close()


def test_without_scripts_there_is_the_self_check(served, open_page):
    address = f"http://127.0.0.1:{served}/quiz/7.html"
    page = open_page(address, java_script_enabled=False)
    expect(page.locator(".self-check")).to_be_visible()
    expect(page.locator("#quiz")).to_be_hidden()


def test_where_no_quiz_can_begin_the_self_check_stays(served, open_page, server):
    (server.data / "quiz.sqlite3").write_bytes(b"no history")
    page = open_page(f"http://127.0.0.1:{served}/quiz/7.html")
    expect(page.locator("#quiz [role=alert]")).to_be_visible()
    expect(page.locator(".self-check")).to_be_visible()


SHIFTS = """() => {
    window.shifts = [];
    const note = list => window.shifts.push(...list.map(each => [
        each.value, ...each.sources.map(one => one.node ? one.node.nodeName : "")]));
    window.watcher = new PerformanceObserver(list => note(list.getEntries()));
    window.watcher.observe({ type: "layout-shift", buffered: true });
    window.shiftsSoFar = () => { note(window.watcher.takeRecords()); return shifts; };
}"""
SLOW = {"offline": False, "latency": 150}
SLOW |= {"downloadThroughput": 200_000, "uploadThroughput": 90_000}


def shifts(page, address):
    """Open a page over a slow line, and return what moved while it came.

    A hundredth of the screen is nothing: what is felt begins at a tenth, and a machine
    that is busy paints a border or two between two of its frames.
    """
    page.add_init_script(f"({SHIFTS})()")
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    session.send("Network.emulateNetworkConditions", SLOW)
    page.goto(address)
    for _ in range(2):
        page.evaluate(PAINTED)
    moved = page.evaluate("shiftsSoFar()")
    return moved if sum(value for value, *_ in moved) > 0.01 else []


@pytest.mark.further
@pytest.mark.parametrize("width", quick_first([390, 1280]))
def test_nothing_moves_while_the_served_quiz_comes(book, served, open_page, width):
    address = f"http://127.0.0.1:{served}/quiz/7.html"
    page = open_page(address, width=width, locale="en")
    assert shifts(page, address) == []
    expect(page.get_by_role("button", name="Begin")).to_be_visible()
    begin_and_skip_to(page, book, "numeric")
    page.get_by_role("button", name="Skip").click()
    page.locator("#quiz .feedback").wait_for()
    assert shifts(page, address) == []  # with a quiz to go on with
    expect(page.get_by_role("button", name="Go on")).to_be_visible()


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_moves_while_a_quiz_comes_from_disk(site, open_page, width):
    page = open_page("about:blank", width=width, locale="en")
    topic = f"file://{site}/quiz/35/layout.html"
    for address in (f"file://{site}/quiz/35.html", topic):
        assert shifts(page, address) == []
    page.get_by_role("button", name="Skip").first.click()
    expect(page.locator(".question.done")).to_have_count(1)
    for address in (f"file://{site}/quiz/35.html", topic):
        assert shifts(page, address) == []
        expect(page.locator("h1")).to_be_visible()
    expect(page.locator(".question.done")).to_have_count(1)


@pytest.mark.further
def test_the_focus_is_the_readers_until_an_answer_was_asked_for(
    book, served, open_page
):
    page = open_page(f"http://127.0.0.1:{served}/quiz/7.html")
    page.get_by_role("button", name="Begin").wait_for()
    assert page.evaluate("document.activeElement === document.body")
    begin_and_skip_to(page, book, "numeric")
    page.get_by_label("Your answer").fill("987654321")
    held = []
    page.route("**/-/quiz/7", lambda route: held.append(route))
    page.get_by_role("button", name="Answer").click()
    expect(page.locator("#quiz")).to_have_js_property("inert", True)  # it was sent
    page.locator("#search").focus()
    while not held:  # what holds it is told after
        page.wait_for_timeout(20)
    held.pop().continue_()
    page.locator("#quiz .feedback .wrong").wait_for()
    expect(page.locator("#search")).to_be_focused()


def fill(page, variant):
    """Answer with the key, by whatever the page has for it."""
    fill_in(page.locator("form.question"), variant)

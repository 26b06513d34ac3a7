"""A mechanism that plays: by button and key, still on request, whole without them."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.barriers import barriers
from tests.browser.test_pages import overflow
from tests.helpers import read_search_index
from tests.quick import quick_first

pytestmark = pytest.mark.sampled

RING = "mechanisms/ring-all-reduce.html"
WIDE = "mechanisms/tensor-parallel.html"
SCHEDULES = "mechanisms/pipeline-schedules.html"
SIZES = """texts => texts.map(text => {
    const matrix = text.getScreenCTM();
    return parseFloat(getComputedStyle(text).fontSize) * matrix.a;
})"""


@pytest.fixture
def ring(site, open_page):
    return open_page(f"file://{site}/{RING}")


def press(page, name):
    page.get_by_role("button", name=name, exact=True).click()


def at(page, step):
    """Expect that this step is shown: its frame, its row, its number, its words."""
    count = page.locator(".frame").count()
    expect(page.locator(".player .at")).to_have_text(f"{step} / {count - 1}")
    expect(page.locator(".frame.on")).to_have_count(1)
    expect(page.locator(".frame").nth(step)).to_be_visible()
    row = page.locator(".steps tbody tr").nth(step)
    expect(row).to_have_class("on")
    words = row.locator("td").nth(1).locator('[lang="en"]').text_content()
    expect(page.locator(".player .said")).to_contain_text(words)


def test_buttons_step_and_stop_at_both_ends(ring):
    last = ring.locator(".frame").count() - 1
    assert last == 6  # of four ranks, two rounds of three
    at(ring, 0)
    press(ring, "Step back")
    at(ring, 0)
    for step in (1, 2):
        press(ring, "Next step")
        at(ring, step)
    press(ring, "Last step")
    at(ring, last)
    press(ring, "Next step")
    at(ring, last)
    press(ring, "First step")
    at(ring, 0)


def test_keys_step_where_the_drawing_has_the_focus(ring):
    stage = ring.locator(".stage-box")
    ring.keyboard.press("ArrowRight")
    at(ring, 0)  # the page's own key
    stage.focus()
    for key, step in (("ArrowRight", 1), ("End", 6), ("ArrowLeft", 5), ("Home", 0)):
        ring.keyboard.press(key)
        at(ring, step)
    before = ring.evaluate("scrollY")
    ring.keyboard.press("Control+ArrowRight")
    at(ring, 0)
    assert ring.evaluate("scrollY") == before


def test_keys_step_where_a_button_has_the_focus(ring):
    following = ring.get_by_role("button", name="Next step", exact=True)
    following.focus()
    for key, step in (("Enter", 1), ("ArrowRight", 2), ("ArrowLeft", 1), (" ", 2)):
        ring.keyboard.press(key)
        at(ring, step)
    expect(following).to_be_focused()
    ring.locator("details.steps summary").focus()
    ring.keyboard.press("ArrowRight")
    at(ring, 2)


def test_it_plays_by_itself_until_the_end_or_a_stop(site, open_page):
    ring = open_page("about:blank", locale="en")  # its clock is nobody else's
    ring.clock.install(time=0)
    ring.goto(f"file://{site}/{RING}")
    ring.clock.pause_at(3_600)
    play = ring.get_by_role("button", name="Play", exact=True)
    play.click()
    expect(play).to_have_attribute("aria-pressed", "true")
    ring.clock.run_for(1_500)
    at(ring, 1)
    ring.locator(".stage-box").focus()
    ring.keyboard.press(" ")
    expect(play).to_have_attribute("aria-pressed", "false")
    ring.clock.run_for(10_000)
    at(ring, 1)
    play.click()
    ring.clock.run_for(10_000)
    at(ring, 6)
    expect(play).to_have_attribute("aria-pressed", "false")
    play.click()  # from the beginning
    at(ring, 0)


def test_who_wants_no_motion_has_steps_and_no_play(ring):
    ring.emulate_media(reduced_motion="reduce")
    ring.reload()
    expect(ring.get_by_role("button", name="Play", exact=True)).to_be_hidden()
    press(ring, "Next step")
    at(ring, 1)
    ring.emulate_media(reduced_motion="no-preference")


@pytest.mark.parametrize("page", [RING, SCHEDULES])
def test_without_scripts_the_last_frame_and_the_table_stand_there(
    site, open_page, page
):
    opened = open_page(f"file://{site}/{page}", java_script_enabled=False)
    expect(opened.locator(".controls")).to_be_hidden()
    frames = opened.locator(".frame")
    expect(frames.last).to_be_visible()
    shown = opened.locator(".frame:visible").count()
    assert shown == (1 if page == RING else frames.count())
    opened.locator(".steps summary").click()
    rows = opened.locator(".steps tbody tr")
    assert rows.count() == (frames.count() if page == RING else 5 * 4)
    expect(rows.last).to_be_visible()


def test_schedules_begin_whole_and_go_along_time(site, open_page):
    page = open_page(f"file://{site}/{SCHEDULES}")
    frames = page.locator(".frame")
    expect(page.locator(".frame.on")).to_have_count(frames.count())
    press(page, "First step")
    expect(page.locator(".frame.on")).to_have_count(0)
    page.locator(".stage-box").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".frame.on")).to_have_count(5)  # each begins at once
    expect(page.locator(".player .said")).to_have_text(re.compile(r"forwards: 1$"))


def test_steps_are_said_in_the_language_of_the_page(ring):
    ring.locator("#lang-es + label").click()
    press(ring, "Paso siguiente")
    expect(ring.locator(".player .said")).to_contain_text("mensajes")
    expect(ring.locator(".player .said [lang=en]:visible")).to_have_count(0)


@pytest.mark.parametrize(
    "page", quick_first([WIDE, RING, SCHEDULES, "mechanisms/index.html"], 2)
)
def test_no_barrier_and_nothing_to_scroll_sideways(site, open_page, page):
    opened = open_page(f"file://{site}/{page}")
    for details in opened.locator(".steps summary").all():
        details.click()
    assert barriers(opened) == ""
    opened.emulate_media(color_scheme="dark")
    assert barriers(opened, "color-contrast") == ""
    for width in (320, 360, 768, 1440):
        opened.set_viewport_size({"width": width, "height": 900})
        assert overflow(opened) == 0, width


@pytest.mark.parametrize("page", [RING, WIDE, SCHEDULES, "mechanisms/fsdp.html"])
def test_what_is_written_in_a_drawing_can_be_read_on_a_phone(site, open_page, page):
    opened = open_page(f"file://{site}/{page}", width=360)
    sizes = opened.locator("svg.stage text:visible").evaluate_all(SIZES)
    assert len(sizes) > 5
    least = 7 if page == SCHEDULES else 8  # digits of a schedule whole on one screen
    assert min(sizes) >= least


def test_a_drawing_wider_than_a_phone_follows_what_changes(site, open_page):
    page = open_page(f"file://{site}/{WIDE}", width=360)
    box = page.locator(".stage-box")
    assert box.evaluate("box => box.scrollWidth > box.clientWidth + 100")
    moved = []
    for _ in range(page.locator(".frame").count() - 1):
        press(page, "Next step")
        place = page.locator(".frame.on").get_attribute("data-x")
        seen = box.evaluate("box => [box.scrollLeft, box.clientWidth, box.scrollWidth]")
        moved.append(seen[0])
        if place:
            assert seen[0] <= float(place) * seen[2] <= seen[0] + seen[1]
    assert max(moved) > 0


def test_mechanisms_are_found_and_linked_from_notes_concepts_and_comparisons(
    site, open_page
):
    index = read_search_index(site)
    pages = {
        path.relative_to(site).as_posix() for path in site.glob("mechanisms/*.html")
    }
    assert pages <= index.keys()
    page = open_page(f"file://{site}/index.html")
    for words in ("zero bubble", "todos con todos en anillo", "ring all-reduce"):
        page.locator("#search").fill(words)
        found = page.locator('#search-results a[href*="mechanisms/"]')
        expect(found.first).to_be_visible()
    linked = {"concepts.html": 10, "beside/tensor-parallel.html": 1}
    linked |= {"beside/zero.html": 1, "labs/02.html": 1}
    layers = "read/megatron/megatron/core/tensor_parallel/layers.py.html"
    for place, least in {**linked, layers: 3}.items():
        html = (site / place).read_text()
        assert len(re.findall(r'href="[./]*mechanisms/[a-z]', html)) >= least, place
    page.goto(f"file://{site}/{layers}#tp-row-forward")
    moves = page.locator("#tp-row-forward .part", has_text="It moves")
    moves.get_by_role("link", name="A block cut in tensor parallelism").click()
    page.wait_for_url(f"**/{WIDE}")


def test_questions_of_a_mechanism_are_told_by_what_they_ask(site, open_page):
    page = open_page(f"file://{site}/mechanisms/zero-3.html")
    asked = page.locator("main li a[href*='quiz/35/'][href*='#q-']")
    english = asked.first.inner_text()
    assert english.count(" ") > 3
    page.locator("#lang-es + label").click()
    expect(asked.first).not_to_have_text(english, use_inner_text=True)

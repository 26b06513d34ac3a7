"""What a reader does: notes beside lines, links, search, language, theme, keyboard."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from playwright.sync_api import expect

from readerkit.app.library import open_library
from tests.helpers import ROOT

pytestmark = pytest.mark.sampled

LAYERS = "read/megatron/megatron/core/tensor_parallel/layers.py.html"


@pytest.fixture
def layers(site, open_page):
    return open_page(f"file://{site}/{LAYERS}")


def box(page, selector):
    return page.locator(selector).first.bounding_box()


def reads(part, text):
    """Expect that what is seen of a part is this text, or this pattern."""
    expect(part).to_have_text(text, use_inner_text=True)


def test_note_stands_beside_its_first_line(layers):
    line, note = box(layers, "#L1274"), box(layers, "#tp-row-forward")
    assert note["x"] >= line["x"] + line["width"]
    assert abs(note["y"] - line["y"]) < 4


def test_notes_never_collide(layers):
    boxes = [note.bounding_box() for note in layers.locator(".code .note").all()]
    assert len(boxes) > 5
    for one, other in pairwise(boxes):
        assert one["y"] + one["height"] <= other["y"]


@pytest.mark.parametrize("has_scripts", [True, False])
def test_on_a_phone_a_note_folds_in_under_its_span(site, open_page, has_scripts):
    page = open_page(
        f"file://{site}/{LAYERS}", width=390, java_script_enabled=has_scripts
    )
    # The second begins in the last line of the first.
    for name, last in [("sp-regather-input", 531), ("tp-dgrad-overlap", 548)]:
        line, note = box(page, f"#L{last}"), box(page, f"#{name}")
        assert note["y"] >= line["y"] + line["height"]
        assert note["y"] < box(page, f"#L{last + 1}")["y"]


@pytest.mark.slow
def test_every_note_of_the_book_stands_near_its_lines(site, open_page):
    page = open_page(f"file://{site}/{LAYERS}", width=1440)
    noted = [
        file
        for file in (site / "read").rglob("*.html")
        if b'class="note ' in file.read_bytes()
    ]
    far, count = [], 0
    for file in noted:
        page.goto(f"file://{file}")
        below = page.evaluate(
            """Array.from(document.querySelectorAll(".code .note"), (note) => [note.id,
            note.getBoundingClientRect().top - document.querySelector(
            `#L${note.dataset.first}`).getBoundingClientRect().top])"""
        )
        count += len(below)
        far += [each for each in below if not -4 < each[1] < 220]
    assert count > 80
    assert far == []


@pytest.mark.parametrize("width", [1440, 390])
def test_a_note_that_is_linked_to_is_open_and_shown_with_its_lines(
    site, open_page, width
):
    page = open_page(f"file://{site}/{LAYERS}#tp-row-bias-once", width=width)
    note = page.locator("#tp-row-bias-once")
    expect(note.locator("details.proof").last).to_be_visible()
    for place in (page.locator("#L1300"), note.locator(".title")):
        expect(place).to_be_in_viewport()
    other = page.locator("#tp-row-forward")
    expect(other.locator("details.proof").last).to_be_hidden()
    note.get_by_role("link", name="Previous note").click()
    expect(other.locator("details.proof").last).to_be_visible()
    expect(note.locator("details.proof").last).to_be_hidden()


def test_without_scripts_too_a_linked_note_is_open_below_its_lines(site, open_page):
    page = open_page(
        f"file://{site}/{LAYERS}#tp-row-forward", width=1440, java_script_enabled=False
    )
    note = page.locator("#tp-row-forward")
    expect(note.get_by_text("Why", exact=True)).to_be_visible()
    title = note.locator(".title")
    for place in (page.locator("#L1294"), page.locator("#L1276"), title):
        expect(place).to_be_in_viewport()


def test_a_note_that_was_linked_to_can_be_folded(site, open_page):
    page = open_page(f"file://{site}/{LAYERS}#tp-row-forward")
    note = page.locator("#tp-row-forward")
    note.locator(".more > summary").click()
    expect(note.get_by_text("Why", exact=True)).to_be_hidden()


def test_each_note_has_a_bracket_that_its_neighbour_has_not(layers):
    def edges(name):
        return layers.locator(f'.edge[data-of="{name}"]')

    assert edges("tp-row-forward").count() == 1294 - 1274 + 1
    one, next_one = edges("tp-row-forward").last, edges("tp-row-bias-once").first
    gap = next_one.bounding_box()["y"] - (
        one.bounding_box()["y"] + one.bounding_box()["height"]
    )
    assert gap >= 2
    outer = edges("sp-regather-input").last.bounding_box()["x"]
    inner = edges("tp-dgrad-overlap").first.bounding_box()["x"]
    assert inner - outer >= 5


def test_lines_and_their_note_mark_each_other(layers):
    layers.locator("#L1280").hover()
    expect(layers.locator("#tp-row-forward.active")).to_have_count(1)
    layers.locator("#tp-row-bias-once").hover()
    expect(layers.locator("#tp-row-bias-once.active")).to_have_count(1)
    expect(layers.locator(".note.active")).to_have_count(1)
    expect(layers.locator(".edge.on")).to_have_count(1300 - 1295 + 1)


def test_the_keyboard_reaches_the_notes_at_once_and_steps_through_them(layers):
    layers.keyboard.press("Tab")
    layers.keyboard.press("Tab")
    layers.keyboard.press("Enter")
    layers.wait_for_url("**#tp-init-gpu-depends-on-degree")
    expect(layers.locator("#tp-init-gpu-depends-on-degree")).to_be_focused()
    for _ in range(3):  # its lines, to the next; its title stands after
        layers.keyboard.press("Tab")
        focused = layers.evaluate("document.activeElement.textContent")
        if "Next note" in focused:
            break
    layers.keyboard.press("Enter")
    layers.wait_for_url("**#sp-regather-input")


def test_a_late_word_of_the_new_address_leaves_the_keyboard_where_it_is(
    site, open_page
):
    page = open_page(f"file://{site}/{LAYERS}#tp-row-forward")
    lines = page.locator("#tp-row-forward a.span")
    lines.focus()
    page.evaluate("dispatchEvent(new HashChangeEvent('hashchange'))")
    expect(lines).to_be_focused()


def test_lines_in_the_address_are_marked(site, open_page):
    page = open_page(f"file://{site}/{LAYERS}#L10-L12")
    expect(page.locator(".lines > .on")).to_have_count(3)


@pytest.mark.parametrize("lines", ["L1274", "L1274-L1274", "L1274-L1280"])
def test_lines_in_the_address_are_in_view(site, open_page, lines):
    page = open_page(f"file://{site}/{LAYERS}#{lines}")
    expect(page.locator(".lines > .on").first).to_be_in_viewport()
    page.goto(f"file://{site}/{LAYERS}#L10")
    expect(page.locator("#L10")).to_be_in_viewport()
    page.goto(f"file://{site}/{LAYERS}#{lines}")
    expect(page.locator("#L1274")).to_be_in_viewport()


def test_the_footer_waits_for_the_last_note(layers):
    notes = layers.locator(".code .note")
    last = max(
        note["y"] + note["height"]
        for note in (notes.nth(i).bounding_box() for i in range(notes.count()))
    )
    assert layers.locator("footer.foot").bounding_box()["y"] >= last


def test_choosing_lines_changes_the_address(layers):
    number = {"x": 20, "y": 8}  # before the text of a line
    layers.locator("#L20").click(position=number)
    layers.wait_for_url("**#L20")
    layers.locator("#L24").click(position=number, modifiers=["Shift"])
    layers.wait_for_url("**#L20-L24")
    expect(layers.locator(".lines > .on")).to_have_count(5)


STANDS_STILL = """selector => {
    const before = window.topBefore
    window.topBefore = document.querySelector(selector).getBoundingClientRect().top
    return window.topBefore === before
}"""


def test_selecting_text_over_lines_changes_the_address(layers):
    # Pages are laid out in steps: the mouse goes once lines stand still, and once more
    # where they moved under it all the same.
    for _ in range(5):
        layers.wait_for_function(STANDS_STILL, arg="#L19", polling=500)
        layers.locator("#L16").hover(position={"x": 80, "y": 8})
        layers.mouse.down()
        layers.locator("#L19").hover(position={"x": 120, "y": 8})
        layers.mouse.up()
        layers.wait_for_url("**#L16-L*")
        if layers.url.endswith("#L16-L19"):
            return
        layers.evaluate("getSelection().removeAllRanges()")
    pytest.fail(f"the address is {layers.url}")


def test_a_name_leads_to_its_definition_and_back_to_its_uses(layers):
    line = layers.locator("#L1274")
    line.get_by_role("link", name="_forward_impl").click()
    layers.wait_for_url("**#L1239")
    layers.locator("#L1239 a.f").click()
    layers.wait_for_url("**/layers.py.uses.html#RowParallelLinear._forward_impl")
    uses = layers.locator("section.uses", has_text="RowParallelLinear._forward_impl")
    uses.get_by_role("link", name="1274").click()
    layers.wait_for_url("**/layers.py.html#L1274")


@pytest.mark.further
def test_megatron_leads_into_pytorch(layers):
    layers.locator('.lines > div > a[href*="distributed_c10d.py.html#"]').first.click()
    layers.wait_for_url("**/read/pytorch/torch/distributed/distributed_c10d.py.html#*")


@pytest.mark.further
def test_search_is_walked_with_the_keyboard(layers):
    layers.keyboard.press("Control+k")
    layers.keyboard.type("RowParallelLinear.forward")
    layers.locator("#search-results a").first.wait_for()
    layers.keyboard.press("ArrowDown")
    layers.keyboard.press("ArrowUp")
    layers.keyboard.press("Enter")
    layers.wait_for_url("**/layers.py.html#L1245")
    layers.keyboard.press("Control+k")
    layers.keyboard.press("Escape")
    expect(layers.locator("#search-results")).to_be_hidden()


def test_the_theme_is_remembered(layers):
    button = layers.locator("#theme")
    button.click()
    button.click()
    page = layers.locator("html")
    expect(page).to_have_attribute("data-theme", "dark")
    dark = page.evaluate("page => getComputedStyle(page).backgroundColor")
    layers.reload()
    expect(page).to_have_css("background-color", dark)


def test_the_language_is_remembered_and_what_is_missing_is_marked(
    small_site, open_page
):
    page = open_page(f"file://{small_site}/read/sample/lib/linear.py.html")
    page.locator("#lang-es + label").click()
    translated, missing = page.locator("#close"), page.locator("#whole-step")
    expect(translated.get_by_text("Un conmutador lo elige.")).to_be_visible()
    expect(translated.get_by_text("One switch picks it.")).to_be_hidden()
    expect(missing.get_by_text("Forward, then backward.")).to_be_visible()
    expect(missing.locator(".only-es").first).to_be_visible()
    page.reload()
    expect(page.locator("html")).to_have_attribute("lang", "es")
    expect(translated.get_by_text("Un conmutador lo elige.")).to_be_visible()


PLACE = (
    """() => Math.round(document.getElementById('L1289').getBoundingClientRect().top)"""
)


@pytest.mark.parametrize("width", [390, 768, 1280])
@pytest.mark.further
def test_neither_a_switch_nor_a_focus_in_the_bar_loses_the_place(
    site, open_page, width
):
    layers = "read/megatron/megatron/core/tensor_parallel/layers.py.html#L1289"
    page = open_page(f"file://{site}/{layers}", width=width)
    place = page.evaluate(PLACE)
    assert 0 < place < 900
    page.keyboard.press("/")
    expect(page.locator("#search")).to_be_focused()
    page.locator("#theme").focus()
    page.locator(".goto input").focus()
    assert abs(page.evaluate(PLACE) - place) <= 2
    for language in ("es", "en"):
        page.locator(f"#lang-{language} + label").click()
        expect(page.locator("html")).to_have_attribute("lang", language)
        assert abs(page.evaluate(PLACE) - place) <= 2, language


def test_concepts_and_their_cards_follow_the_language(small_site, open_page):
    page = open_page(f"file://{small_site}/concepts.html")
    page.locator("#lang-es + label").click()
    translated, missing = page.locator("#all-reduce"), page.locator("#collectives")
    expect(translated.get_by_text("Todos reciben la suma.")).to_be_visible()
    expect(translated.get_by_text("Everyone gets the sum.")).to_be_hidden()
    expect(translated.locator(".only-es")).to_have_count(0)
    expect(missing.locator(".only-es")).to_be_visible()
    page.goto(f"file://{small_site}/read/sample/lib/linear.py.html")
    page.locator("#close .more > summary").click()
    chip = page.locator("#close .tip").first
    reads(chip.locator("a"), "Suma entre todos")
    chip.locator("a").focus()
    chip.locator(".card").wait_for(state="visible")
    reads(chip.locator(".card"), "Todos reciben la suma.")
    page.locator("#lang-en + label").click()
    chip.locator("a").focus()
    reads(chip.locator(".card"), "Everyone gets the sum.")


def test_the_first_tab_skips_to_the_content(layers):
    layers.keyboard.press("Tab")
    expect(layers.locator(".skip").first).to_be_focused()
    layers.keyboard.press("Enter")
    expect(layers.locator("#content")).to_be_focused()


def test_a_note_marks_its_lines_under_the_keyboard_too(layers):
    layers.locator("#tp-row-forward summary").first.focus()
    expect(layers.locator(".edge.on")).to_have_count(1294 - 1274 + 1)


def test_a_concept_shows_its_card_and_escape_puts_it_away(layers):
    layers.locator("#tp-row-forward .more > summary").press("Enter")
    chip = layers.locator("#tp-row-forward .tip").first
    chip.locator("a").focus()
    card = chip.locator(".card")
    card.wait_for(state="visible")
    layers.keyboard.press("Escape")
    card.wait_for(state="hidden")


def wait_until_read(page, note):
    """Wait until the browser keeps a note as read: once it was open for a while."""
    kept = "note => (localStorage['readerkit.read'] || '').includes(note)"
    page.wait_for_function(kept, arg=note, polling=100)


def test_what_was_read_is_remembered(site, open_page):
    page = open_page(f"file://{site}/{LAYERS}#tp-row-forward")
    wait_until_read(page, "tp-row-forward")
    page.goto(f"file://{site}/index.html")
    files = page.locator("[data-notes]", has_text="tensor_parallel/layers.py")
    expect(files.locator(".read-count")).to_have_text(re.compile("^1 /"))
    page.goto(f"file://{site}/paths.html")
    expect(page.locator('[data-note="tp-row-forward"].read').first).to_be_attached()


KEPT = {
    '["tp-row-forward", "of-another-book", "gone", "chapters/a.html"]': 1,
    '[1, null, "tp-row-forward"]': 1,
    '"tp-row-forward"': 0,
    "{}": 0,
}


@pytest.fixture(scope="module")
def in_book():
    """How many notes the book has."""
    return len(open_library(ROOT).book.annotations)


def test_only_notes_of_this_book_are_counted(site, open_page, in_book):
    page = open_page(f"file://{site}/index.html")
    for kept, count in KEPT.items():
        page.evaluate("kept => { localStorage['readerkit.read'] = kept; }", kept)
        page.reload()
        expect(page.locator(".so-far")).to_have_text(f"{count} / {in_book}")


def test_the_start_page_says_where_its_stop_is_and_how_far_one_is(
    site, open_page, in_book
):
    page = open_page(f"file://{site}/index.html")
    stop = page.locator(".first-stop")
    for said in (
        "Megatron-LM core_v0.16.1",
        "megatron/core/tensor_parallel/layers.py",
        "RowParallelLinear.forward",
    ):
        assert said in stop.inner_text()
    # Bars are explained where they are; a stale record draws none.
    bars = stop.locator(".l.ran").count()
    assert (bars > 0) == ("ran in a recorded step" in stop.inner_text())
    reads(page.locator(".progress"), f"· 0 / {in_book} notes read")
    assert box(page, ".progress")["y"] < box(page, ".first-stop")["y"]
    # All that it lists has its Spanish: nothing is marked as English.
    page.locator("#lang-es + label").click()
    expect(page.locator("html")).to_have_attribute("lang", "es")
    expect(page.locator(".thirds .only-es")).to_have_count(0)


def test_the_start_page_has_three_doors_and_a_question_to_answer(site, open_page):
    page = open_page(f"file://{site}/index.html")
    doors = page.locator(".doors section")
    expect(doors).to_have_count(3)
    doors.nth(2).get_by_role("link", name="The job hangs").click()
    page.wait_for_url("**/paths.html#silent-hang")
    page.go_back()
    options = page.locator("details.option")
    expect(options).to_have_count(4)
    verdicts = []
    for option in options.all():
        option.locator("summary").click()
        expect(option.locator("strong")).to_be_visible()
        verdicts.append(option.locator("strong").inner_text())
        assert len(option.locator("p").inner_text()) > 60
    assert sorted(verdicts) == ["Right."] + 3 * ["Wrong."]


def test_the_start_page_says_where_the_reader_stopped(site, open_page):
    page = open_page(f"file://{site}/index.html")
    expect(page.locator("#left-off")).to_be_hidden()
    door = page.locator(".doors section").filter(has_text="I study")
    expect(door.locator("ol a[href^='chapters/']")).to_have_count(12)
    expect(door.locator("#studied")).to_be_hidden()
    door.locator("ol a").first.click()
    page.wait_for_url("**/chapters/*")  # and its load, which keeps it
    title = page.locator("h1").inner_text()
    page.goto(f"file://{site}/index.html")
    page.locator("#left-off").get_by_role("link", name=title).click()
    page.wait_for_url("**/chapters/*")
    page.goto(f"file://{site}/index.html")
    page.evaluate(
        'localStorage[\'readerkit.last\'] = \'{"page":"javascript:1","title":"x"}\''
    )
    page.reload()
    expect(page.locator("#left-off")).to_be_hidden()


def test_the_door_of_study_leads_back_into_the_section_of_a_chapter(site, open_page):
    page = open_page(f"file://{site}/chapters/pipelines.html")
    head = page.locator("[data-chapter] h2:visible").nth(3)
    head.evaluate("head => head.scrollIntoView()")
    told = f"{page.locator('h1').inner_text()}: {head.inner_text()}"
    page.goto(f"file://{site}/labs/00.html")  # which is no chapter
    page.goto(f"file://{site}/index.html")
    expect(page.locator("#left-off a")).not_to_have_text(told)
    page.locator("#studied").get_by_role("link", name=told).click()
    page.wait_for_url("**/chapters/pipelines.html#*")
    expect(head).to_be_in_viewport()


def test_the_tree_is_folded_but_where_notes_are_or_an_address_leads(site, open_page):
    address = f"file://{site}/read/megatron/index.html"
    page = open_page(address)
    noted = page.locator(".tree").get_by_role("link", name="layers.py", exact=True)
    plain = page.locator(".tree").get_by_role("link", name="trtllm_helper.py")
    expect(noted.first).to_be_visible()
    expect(plain).to_be_hidden()
    page.locator('[id="megatron/core/export"] > summary').press("Enter")
    page.locator('[id="megatron/core/export/trtllm"] > summary').press("Enter")
    expect(plain).to_be_visible()
    page.goto("about:blank")
    page.goto(f"{address}#megatron/core/export/trtllm")
    expect(plain).to_be_visible()


def test_spanish_fits_as_english_does(layers):
    bar = box(layers, ".top")["height"]
    assert bar < 60
    layers.locator("#lang-es + label").click()
    expect(layers.get_by_text("Un solo conmutador elige").first).to_be_visible()
    assert box(layers, ".top")["height"] == pytest.approx(bar, abs=1)
    test_notes_never_collide(layers)


@pytest.mark.further
def test_search_and_theme_speak_the_chosen_language(layers):
    search, theme = layers.locator("#search"), layers.locator("#theme")
    expect(search).to_have_attribute("placeholder", "Search")
    layers.locator("#lang-es + label").click()
    expect(search).to_have_attribute("placeholder", "Buscar")
    expect(search).to_have_attribute("aria-label", "Buscar nombres, archivos, notas")
    expect(theme).to_have_attribute("aria-label", "Tema: el del sistema")
    search.fill("perdida de")  # without its accent
    found = layers.locator("#search-results")
    found.get_by_text("decisión").first.wait_for()
    expect(found.get_by_text("pérdida").first).to_be_visible()
    search.fill("nadanadanada")
    reads(found, "Nada encontrado")
    layers.locator("#lang-en + label").click()
    expect(search).to_have_attribute("placeholder", "Search")
    expect(theme).to_have_attribute("aria-label", "Theme: as the system says")


def test_a_chapter_shows_one_language_at_a_time_and_each_drawing_once(site, open_page):
    page = open_page(f"file://{site}/chapters/why-distributed.html")
    drawings = page.locator("svg.stage").count()
    assert drawings == 6
    expect(
        page.get_by_role("heading", name="Reason one: it does not fit")
    ).to_be_visible()
    expect(page.get_by_role("heading", name="Razón uno: no cabe")).to_be_hidden()
    page.locator("#lang-es + label").click()
    expect(
        page.get_by_role("heading", name="Reason one: it does not fit")
    ).to_be_hidden()
    expect(page.get_by_role("heading", name="Razón uno: no cabe")).to_be_visible()
    expect(page.locator("svg.stage:visible")).to_have_count(drawings)
    expect(page.get_by_text("un rank espera 18 unidades")).to_have_count(2)


@pytest.mark.parametrize("width", [390, 1280])
def test_sums_need_no_sideways_scrolling_in_either_language(site, open_page, width):
    page = open_page(f"file://{site}/chapters/why-distributed.html", width=width)
    for language in ("en", "es"):
        page.locator(f"#lang-{language} + label").click()
        tables = page.locator(".set-here table.items").all()
        assert tables
        for table in tables:
            end = table.bounding_box()["x"] + table.evaluate("e => e.scrollWidth")
            assert end <= width

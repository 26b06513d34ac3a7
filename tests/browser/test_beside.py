"""Side by side: marking the other side, predicting, picking an event, on paper."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import expect

from readerkit.evidence.line_ranges import lines_from_text
from tests.browser.barriers import barriers
from tests.browser.pixels import colours
from tests.browser.test_pages import overflow
from tests.helpers import ROOT
from tests.quick import quick_first

pytestmark = pytest.mark.sampled

PAGE = "beside/tensor-parallel.html"
NAME = "#r-tensor_parallel_megatron"
RECORDS = ROOT / "annotations" / "records"
SCHEDULES = "mini_impls/schedules.py"
ROW_LAYER = "megatron:megatron/core/tensor_parallel/layers.py:1294"


@pytest.fixture
def page(site, open_page):
    return open_page(f"file://{site}/{PAGE}")


@pytest.fixture
def record(page):
    return page.locator(NAME)


def ground(page, selector):
    """Return the colours that lines stand on, excerpt by excerpt."""
    style = "all => all.map(each => getComputedStyle(each).backgroundColor)"
    return page.locator(f"{selector} .code").evaluate_all(style)


@pytest.mark.parametrize(("one", "other"), [("up", "mini"), ("mini", "up")])
@pytest.mark.parametrize("how", ["mouse", "keyboard"])
def test_a_section_marks_its_other_side(page, one, other, how):
    plain = ground(page, "#s2 .side")
    assert len(plain) == 3 and len(set(plain)) == 1
    place = page.locator(f"#s2 .{one} .place").first
    if how == "mouse":
        place.locator(".code").hover()
    else:
        place.locator("figcaption a").focus()
    expect(page.locator(f"#s2 .{other} .code").first).not_to_have_css(
        "background-color", plain[0]
    )
    marked = ground(page, f"#s2 .{other}")
    assert set(marked) == {ground(page, f"#s2 .{one}")[0]} != {plain[0]}
    assert ground(page, "#s2 .mini").count(plain[0]) == (1 if one == "mini" else 0)
    assert ground(page, "#s3 .side") == plain[:2]


def says(part, text):
    expect(part).to_contain_text(text, use_inner_text=True)


def has_class(name):
    return re.compile(rf"(^| ){name}( |$)")


HIDDEN = (".ev", ".lanes", ".sites")
"""What would give an answer away."""


def test_nothing_near_the_strip_gives_the_answer_away(page, record):
    expect(record.locator(".guess")).to_contain_text("1 / 13")
    for hidden in HIDDEN:
        expect(record.locator(hidden).first).to_be_hidden()
    for there in (".verdict", ".set-up", "tbody", "summary:has-text('Every line')"):
        expect(record.locator(there).first).to_be_visible()
    record.get_by_role("button", name="Just show me").click()
    for hidden in HIDDEN:
        expect(record.locator(hidden).first).to_be_visible()


def test_a_prediction_is_of_what_the_record_holds(site, open_page):
    page = open_page(f"file://{site}/beside/fsdp.html")
    record = page.locator("#r-fsdp_fully_shard")
    expect(record.locator(".set-up")).to_contain_text("2 ranks share out the sequences")
    guess = record.locator(".guess")
    choices = guess.locator(".choices button").all_inner_texts()
    assert choices == ["all-gather", "reduce-scatter", "Just show me"]
    guess.get_by_role("button", name="reduce-scatter").click()
    says(guess, "No: all-gather. 0 / 1")
    whys = [
        "all-gather: each rank gives its part, and all have the whole; "
        "5 in this step, in forward, backward.",
        "reduce-scatter: each rank gives a whole tensor, and has its part of the sum; "
        "3 in this step, in backward.",
    ]
    expect(guess.locator(".whys li:visible")).to_have_text(whys, use_inner_text=True)
    guess.get_by_role("button", name="all-gather").click()
    says(guess, "Yes: all-gather. 1 / 2")
    expect(guess.locator(".whys li:visible")).to_have_count(0)
    expect(record.locator(".strip").first.locator(".ev:visible")).to_have_count(2 * 2)
    for _ in range(6):
        guess.get_by_role("button", name="all-gather").click()
    says(guess, "4 / 8")
    expect(record.locator(".sites")).to_be_visible()


def test_one_operation_is_asked_for_by_its_bytes(record):
    guess = record.locator(".guess")
    choices = guess.locator(".choices button").all_inner_texts()
    assert choices == ["1.02 kB", "65.5 kB", "Just show me"]
    guess.get_by_role("button", name="1.02 kB").click()
    says(guess, "No: 65.5 kB. 0 / 1")
    says(guess, "3 in this step, in forward")


def test_what_was_shown_stays_shown_until_it_is_predicted_again(page, record):
    record.get_by_role("button", name="Just show me").click()
    page.reload()
    for there in HIDDEN:
        expect(record.locator(there).first).to_be_visible()
    record.get_by_role("button", name="Predict it again").click()
    for hidden in HIDDEN:
        expect(record.locator(hidden).first).to_be_hidden()
    page.reload()
    expect(record.locator(".ev").first).to_be_hidden()


@pytest.mark.parametrize("how", ["at once", "later", "other rank"])
def test_an_event_has_an_address(site, open_page, how):
    name, rank = NAME.removeprefix("#r-"), 1 if how == "other rank" else 0
    page = open_page(f"file://{site}/{PAGE}" + ("#s1" if how == "later" else ""))
    where = f"e-{name}-{rank}-u2"
    page.goto(f"file://{site}/{PAGE}#{where}")
    if how != "later":
        page.reload()
    event = page.locator(f"#{where}")
    expect(event).to_be_in_viewport()
    expect(event).to_have_class(has_class("on"))
    picked = page.locator(f"{NAME} .picked")
    expect(picked.get_by_role("link", name=f"#{where}", exact=True)).to_be_visible()
    for drawn in (".clock", ".lanes:not(.clock)"):
        bars = page.locator(f'{NAME} {drawn}[data-rank="{rank}"] g.on')
        expect(bars).to_have_count(2)


def test_a_bar_of_the_drawing_picks_its_event(page, record):
    record.get_by_role("button", name="Just show me").click()
    bar = record.locator('.lanes[data-rank="0"] [data-event="m3"] .waits').first
    bar.click()
    name = NAME.removeprefix("#r-")
    page.wait_for_url(f"**#e-{name}-0-m3")
    expect(page.locator(f"#e-{name}-0-m3")).to_have_class(has_class("on"))


PLACES = """bars => bars.map(bar => {
    const whole = bar.closest("svg").getBoundingClientRect();
    const box = bar.getBoundingClientRect();
    return [box.x - whole.x, box.width];
})"""


@pytest.mark.further
@pytest.mark.parametrize("name", quick_first(["fsdp_fully_shard", "ddp_torch"]))
def test_a_step_is_drawn_by_the_clock(site, open_page, name):
    """Each bar is as long as what it stands for took; both sides have one scale."""
    of = {"fsdp_fully_shard": "fsdp", "ddp_torch": "data-parallel"}[name]
    page = open_page(f"file://{site}/beside/{of}.html", width=1440)
    record = page.locator(f"#r-{name}")
    record.get_by_role("button", name="Just show me").click()
    clocks = json.loads((RECORDS / f"{name}.json").read_text())["clocks"]
    drawing = record.locator(".clock").first
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 900})
        ends = [left for left, _ in drawing.locator(".end").evaluate_all(PLACES)]
        own = {each["side"]: each for each in clocks if each["rank"] == 0}
        start = drawing.locator(".grid").evaluate_all(PLACES)[0][0]
        lengths = [own[side]["step_us"] for side in ("upstream", "mini")]
        scale = (ends[0] - start) / lengths[0]
        assert (ends[1] - start) / lengths[1] == pytest.approx(scale, rel=0.01)
        for side, clock in own.items():
            of_side = drawing.locator(f'g[data-event^="{side[0]}"]')
            for kind, spans in (
                ("issues", clock["issues"]),
                ("waits", [*filter(None, clock["waits"])]),
            ):
                bars = of_side.locator(f".{kind}").evaluate_all(PLACES)
                assert len(bars) == len(spans)
                for (left, across), (begin, end) in zip(bars, spans, strict=True):
                    assert left == pytest.approx(start + begin * scale, abs=1)
                    assert across == pytest.approx((end - begin) * scale, abs=1)
        assert overflow(page) == 0
        assert barriers(record) == ""
    assert len(colours(drawing)) > 6
    assert "of the" in drawing.aria_snapshot() and "hidden" in drawing.aria_snapshot()
    drawing.locator('[data-event="m1"] .issues').click()
    us = next(each for each in clocks if each["side"] == "mini" and not each["rank"])
    (issue, back), wait = us["issues"][1], us["waits"][1]
    told = f"issued at {issue / 1e3:.3f} ms, back after {(back - issue) / 1e3:.3f} ms"
    says(record.locator(".picked"), f"{told}; waited for at {wait[0] / 1e3:.3f} ms")
    page.locator("#lang-es + label").click()
    says(record.locator(".picked"), "según el reloj: emitida a los")
    says(record.locator("figcaption").first, "quedan ocultos bajo lo que se calcula")


def test_the_recorded_order_stands_below_the_clock(site, open_page):
    page = open_page(f"file://{site}/beside/fsdp.html", java_script_enabled=False)
    record = page.locator("#r-fsdp_fully_shard")
    expect(record.locator(".clock").first).to_be_visible()
    order = record.locator(".in-order").first
    expect(order.locator(".lanes")).to_be_hidden()
    order.locator("summary").click()
    expect(order.locator(".lanes")).to_be_visible()


@pytest.mark.further
def test_both_sides_are_drawn_on_one_scale(site, open_page):
    page = open_page(f"file://{site}/beside/data-parallel.html", width=1440)
    record = page.locator("#r-ddp_megatron")
    record.get_by_role("button", name="Just show me").click()
    record.locator(".in-order summary").first.click()
    lanes = record.locator(".in-order .lanes").first
    says(
        record.locator(".in-order figcaption").first,
        "12 of 27 matrix products ran beside a call in flight",
    )
    assert "12 of 27" in lanes.aria_snapshot()
    at = "all => all.map(each => each.getBoundingClientRect().x)"
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 900})
        products = lanes.locator(".product").evaluate_all(at)
        assert len(products) == 2 * 27
        assert products[:27] == pytest.approx(products[27:], abs=0.1)
        calls = lanes.locator(".call").evaluate_all(at)
        assert len(calls) == 2 * 4
        assert calls[:4] == pytest.approx(calls[4:], abs=0.1)
        assert overflow(page) == 0
        assert barriers(record, "scrollable-region-focusable") == ""
    for scheme, rules in (("light", ()), ("dark", ("color-contrast",))):
        page.emulate_media(color_scheme=scheme)
        assert len(colours(lanes)) > 4
        assert barriers(record, *rules) == ""  # all but colours is the same in both


def test_an_event_lights_its_line_and_the_way_there_on_both_sides(page, record):
    record.get_by_role("button", name="Just show me").click()
    record.locator(".moment").nth(1).locator("a").first.click()
    expect(record.locator(".sites .up .l.on")).to_have_count(1)
    expect(record.locator(".sites .mini .l.on")).to_have_count(1)
    says(record.locator(".sites .l.on").first, "all_reduce")
    picked = record.locator(".picked")
    says(picked, "65.5 kB")
    ways = picked.locator(".way")
    expect(ways).to_have_count(2)
    links = ways.first.locator("li > a").all_inner_texts()
    assert links[0] == "mappings.py:31" and "layers.py:1294" in links
    assert not [text for text in links if "launch.py" in text]
    row = page.locator(f'.pair .up .l[data-site="{ROW_LAYER}"]').first
    expect(row).to_have_class(has_class("via"))
    record.locator(".moment").nth(0).locator("a").first.click()
    expect(row).not_to_have_class(has_class("via"))
    says(ways.first, "layers.py:300")


def test_events_are_picked_with_the_keyboard(record, page):
    record.get_by_role("button", name="Just show me").click()
    expect(record.locator(".ev:not(.none)").first).to_be_focused()
    page.keyboard.press("Enter")
    expect(record.locator(".picked")).to_be_visible()


def test_an_event_of_cpp_is_picked_too_and_says_so(site, open_page):
    page = open_page(f"file://{site}/beside/data-parallel.html")
    record = page.locator("#r-ddp_torch")
    record.get_by_role("button", name="Just show me").click()
    record.locator(".moment button.ev").first.click()
    says(record.locator(".picked"), "issued in C++: no line of Python to show")


def test_the_prediction_speaks_the_chosen_language(page, record):
    page.locator("#lang-es + label").click()
    record.get_by_role("button", name="65.5 kB").click()
    says(record.locator(".guess"), "Sí: 65.5 kB.")
    record.get_by_role("button", name="Mostrar todo").click()
    record.locator(".ev").first.click()
    picked = record.locator(".picked")
    says(picked, "All-reduce de 65.5 kB float32; grupo tp;")
    assert "matrix products" not in picked.inner_text()
    record.locator(".in-order summary").first.click()
    says(record.locator(".in-order figcaption").first, "5 de 27 productos")


@pytest.mark.further
@pytest.mark.parametrize("name", quick_first(["collectives", "tensor-parallel"]))
def test_a_told_strip_and_a_picked_event_have_no_barrier(site, open_page, name):
    page = open_page(f"file://{site}/beside/{name}.html")
    record = page.locator(".record").first
    record.get_by_role("button", name="Just show me").click()
    record.locator(".moment a.ev").first.click()
    assert barriers(record) == ""
    page.emulate_media(color_scheme="dark")
    assert barriers(record, "color-contrast") == ""  # all else is the same in the dark


EVENT_BOXES = """parts => parts.map(part => {
    const events = Array.from(part.querySelectorAll(".ev"));
    const boxes = events.map(event => event.getBoundingClientRect());
    return boxes.map(box => [box.y, box.height]);
})"""


def test_both_lanes_stay_in_line(site, open_page):
    page = open_page(f"file://{site}/beside/zero.html")
    record = page.locator("#r-zero_zero_redundancy_optimizer")
    record.get_by_role("button", name="Just show me").click()
    expect(record.locator(".ev").first).to_be_visible()
    moments = record.locator(".strip").first.locator(".moment")
    boxes = moments.evaluate_all(EVENT_BOXES)
    assert len(boxes) > 50  # of which many have a side with nothing in it
    assert len({round(height) for pair in boxes for _, height in pair}) == 1
    assert len({round(below - above) for (above, _), (below, _) in boxes}) == 1


def test_where_no_call_is_common_a_phase_has_those_of_one_side_and_then_the_other(
    site, open_page
):
    page = open_page(f"file://{site}/beside/zero.html")
    record = page.locator("#r-zero_fully_shard_stage2")
    record.get_by_role("button", name="Just show me").click()
    backward = record.locator(".phase", has_text="backward").first
    expect(backward.locator(".ev").first).to_be_visible()
    above, below = backward.locator("ol").evaluate_all(EVENT_BOXES)
    assert max(above) < min(below)
    assert backward.locator(".of-side").all_inner_texts() == ["upstream", "mini"]
    assert record.locator(".strip").first.locator(".ev.none").count() == 0
    backward.locator(".ev").nth(5).click()
    says(record.locator(".picked"), "Reduce of")


def test_paper_has_events_and_no_prediction(page, record):
    page.emulate_media(media="print")
    expect(record.locator(".ev").first).to_be_visible()
    expect(record.locator(".sites")).to_be_visible()
    expect(record.locator(".guess")).to_be_hidden()


def test_all_is_there_without_javascript(site, open_page):
    page = open_page(f"file://{site}/{PAGE}", java_script_enabled=False)
    record = page.locator(NAME)
    for there in (*HIDDEN, "tbody", ".verdict"):
        expect(record.locator(there).first).to_be_visible()
    expect(record.locator(".guess")).to_be_hidden()


def test_the_page_of_schedules_draws_them_and_leads_to_their_records(site, open_page):
    page = open_page(f"file://{site}/beside/pipeline-schedules.html")
    expect(page.locator(".schedules svg.gantt")).to_have_count(5)
    guests = page.locator(".guest")
    expect(guests).to_have_count(8)
    expect(guests.locator("svg.chart")).to_have_count(8)
    guests.get_by_role("link", name="pipeline_torch_gpipe").click()
    page.wait_for_url("**/beside/pipeline-executor.html#r-pipeline_torch_gpipe")


def test_a_record_of_another_page_is_credited_with_lines_that_it_ran(site, open_page):
    page = open_page(f"file://{site}/beside/pipeline-schedules.html")
    guests = page.locator(".guest").all()
    for guest in guests:
        name = guest.locator("h3").inner_text()
        record = json.loads((RECORDS / f"{name}.json").read_text())
        rows = {row["path"]: row for row in record["lit"]}
        expect(guest.get_by_text("Ran in its step")).to_have_count(0)
        assert not rows[SCHEDULES]["steps"]
        said = guest.locator(
            "p", has_text="Ran in set-up or another step:"
        ).inner_text()
        told = {int(number) for number in re.findall(r"\d+", said)}
        setup = {
            f"minis:{path}:{line}"
            for path, row in rows.items()
            for line in lines_from_text(row["setup"])
        }
        sections = page.locator("section.pair").all()
        assert len(sections) > 5
        for number, section in enumerate(sections, 1):
            lines = section.locator(".mini .l").evaluate_all(
                "lines => lines.map(line => line.dataset.site)"
            )
            assert (number in told) == (not setup.isdisjoint(lines)), number


def test_records_of_the_idea_come_before_others(site, open_page):
    page = open_page(f"file://{site}/beside/zero.html")
    names = page.locator(".record h2 code").all_inner_texts()
    assert names and all(name.startswith("zero_") for name in names)
    assert page.locator(".guest h3").all_inner_texts() == ["fsdp_flat_fsdp1"]
    assert "fsdp_flat_param.py" in page.locator(".guest").inner_text()

"""Side by side: marking the other side, predicting, picking an event, on paper."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import expect

from readerkit.evidence.line_ranges import lines_from_text
from tests.browser.barriers import barriers
from tests.helpers import ROOT

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
    marked = ground(page, f"#s2 .{other}")
    assert set(marked) == {ground(page, f"#s2 .{one}")[0]} != {plain[0]}
    assert ground(page, "#s2 .mini").count(plain[0]) == (1 if one == "mini" else 0)
    assert ground(page, "#s3 .side") == plain[:2]


def test_nothing_near_the_strip_gives_the_answer_away(page, record):
    said = record.locator(".guess").inner_text()
    assert "1 / 13" in said
    for hidden in (".ev", ".sites", "summary", "tbody"):
        assert not record.locator(hidden).first.is_visible(), hidden
    record.get_by_role("button", name="Just show me").click()
    for hidden in (".ev", ".sites", "summary", "tbody"):
        assert record.locator(hidden).first.is_visible(), hidden


def test_a_prediction_is_answered(record):
    record.get_by_role("button", name="broadcast").click()
    guess = record.locator(".guess")
    assert "No: all-reduce. 0 / 1" in guess.inner_text()
    record.get_by_role("button", name="all-reduce").click()
    assert "Yes: all-reduce. 1 / 2" in guess.inner_text()
    assert record.locator(".strip").first.locator(".ev:visible").count() == 2 * 2
    for _ in range(11):
        record.get_by_role("button", name="all-reduce").click()
    assert "12 / 13" in guess.inner_text()
    expect(record.locator(".sites")).to_be_visible()


def test_an_event_lights_its_line_and_the_way_there_on_both_sides(page, record):
    record.get_by_role("button", name="Just show me").click()
    record.locator(".moment").nth(1).locator("a").first.click()
    lit = record.locator(".sites .l.on")
    expect(record.locator(".sites .up .l.on")).to_have_count(1)
    expect(record.locator(".sites .mini .l.on")).to_have_count(1)
    assert "all_reduce" in lit.first.inner_text()
    picked = record.locator(".picked")
    assert "65.5 kB" in picked.inner_text()
    ways = picked.locator(".way")
    expect(ways).to_have_count(2)
    links = ways.first.locator("li > a").all_inner_texts()
    assert links[0] == "mappings.py:31" and "layers.py:1294" in links
    assert not [text for text in links if "launch.py" in text]
    row = page.locator(f'.pair .up .l[data-site="{ROW_LAYER}"]').first
    assert "via" in row.get_attribute("class")
    record.locator(".moment").nth(0).locator("a").first.click()
    assert "via" not in row.get_attribute("class")
    assert "layers.py:300" in ways.first.inner_text()


def test_events_are_picked_with_the_keyboard(record, page):
    record.get_by_role("button", name="Just show me").click()
    assert page.evaluate("document.activeElement.className").startswith("ev ")
    page.keyboard.press("Enter")
    expect(record.locator(".picked")).to_be_visible()


def test_an_event_of_cpp_is_picked_too_and_says_so(site, open_page):
    page = open_page(f"file://{site}/beside/data-parallel.html")
    record = page.locator("#r-ddp_torch")
    record.get_by_role("button", name="Just show me").click()
    record.locator(".moment button.ev").first.click()
    assert "issued in C++: no line of Python to show" in (
        record.locator(".picked").inner_text()
    )


def test_the_prediction_speaks_the_chosen_language(page, record):
    page.locator("#lang-es + label").click()
    record.get_by_role("button", name="all-reduce").click()
    assert "Sí: all-reduce." in record.locator(".guess").inner_text()
    record.get_by_role("button", name="Mostrar todo").click()
    record.locator(".ev").first.click()
    picked = record.locator(".picked").inner_text()
    assert "All-reduce de 65.5 kB float32; grupo tp;" in picked
    assert "matrix products" not in picked


def test_a_told_strip_and_a_picked_event_have_no_barrier(site, open_page):
    page = open_page(f"file://{site}/beside/collectives.html")
    page.get_by_role("button", name="Just show me").click()
    page.locator(".moment a.ev").first.click()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert barriers(page) == ""


def test_both_lanes_stay_in_line(site, open_page):
    page = open_page(f"file://{site}/beside/collectives.html")
    page.get_by_role("button", name="Just show me").click()
    boxes = [
        [event.bounding_box() for event in moment.locator(".ev").all()]
        for moment in page.locator(".strip").first.locator(".moment").all()
    ]
    assert len(boxes) > 20  # of which each has a side with nothing in it
    assert len({box["height"] for pair in boxes for box in pair}) == 1
    assert len({below["y"] - above["y"] for above, below in boxes}) == 1


def test_paper_has_events_and_no_prediction(page, record):
    page.emulate_media(media="print")
    expect(record.locator(".ev").first).to_be_visible()
    expect(record.locator(".sites")).to_be_visible()
    expect(record.locator(".guess")).to_be_hidden()


def test_all_is_there_without_javascript(site, open_page):
    page = open_page(f"file://{site}/{PAGE}", java_script_enabled=False)
    record = page.locator(NAME)
    for there in (".ev", ".sites", "tbody"):
        expect(record.locator(there).first).to_be_visible()
    expect(record.locator(".guess")).to_be_hidden()


def test_the_page_of_schedules_draws_them_and_leads_to_their_records(site, open_page):
    page = open_page(f"file://{site}/beside/pipeline-schedules.html")
    expect(page.locator(".drawn svg.chart")).to_have_count(4)
    guests = page.locator(".guest")
    expect(guests).to_have_count(7)
    expect(guests.locator("svg.chart")).to_have_count(7)
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

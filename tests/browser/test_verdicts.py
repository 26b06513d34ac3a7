"""What a record comes to, as a reader meets it: in the open, and true to its plots."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from readerkit.evidence.conclusion import Conclusion, say_conclusion
from tests.browser.barriers import barriers
from tests.browser.pixels import colours, green
from tests.content.test_records import PATHS, read
from tests.quick import quick_first, quick_third

pytestmark = pytest.mark.sampled

HOMES = {
    "collectives": "collectives",
    "ddp": "data-parallel",
    "fsdp": "fsdp",
    "fsdp_flat": "fsdp-flat",
    "fsdp_state": "fsdp",
    "pipeline": "pipeline-executor",
    "sequence_parallel": "sequence-parallel",
    "tensor_parallel": "tensor-parallel",
    "zero": "zero",
}
"""The page that shows the records of each mini in full."""
TRAP = "#r-pipeline_megatron_interleaved_batched"


@pytest.mark.parametrize("mini", quick_third(HOMES))
def test_every_record_says_what_happened_before_anything_is_guessed(
    mini, site, open_page
):
    page = open_page(f"file://{site}/beside/{HOMES[mini]}.html")
    for record in (record for record in map(read, PATHS) if record.mini == mini):
        found = Conclusion.of(record)
        verdict = page.locator(f"#r-{record.comparison} .verdict").first
        spoken = verdict.aria_snapshot()
        for said in say_conclusion(found):
            assert said in spoken
        expect(verdict.locator(".reasons > li")).to_have_count(len(found.reasons))
        for part in verdict.locator("p, li").all():
            expect(part).to_be_visible()
        if found.trap:
            verdict.locator(".trap").get_by_role("link").click()
            page.wait_for_url(f"**#{found.trap.note}")
            page.go_back()


@pytest.mark.further
@pytest.mark.parametrize(
    ("scheme", "width"), quick_first([("light", 390), ("dark", 1440)])
)
def test_nothing_green_stands_over_a_trap(site, open_page, scheme, width):
    page = open_page(f"file://{site}/beside/pipeline-executor.html")
    page.set_viewport_size({"width": width, "height": 1000})
    page.emulate_media(color_scheme=scheme)
    assert not green(colours(page.locator(f"{TRAP} .verdict")))
    page.goto(f"file://{site}/beside/tensor-parallel.html")
    alike = page.locator("#r-tensor_parallel_megatron .verdict").first
    assert green(colours(alike.locator(".mark")))


@pytest.mark.further
def test_kinds_differ_in_more_than_colour(site, open_page):
    page = open_page(f"file://{site}/beside/tensor-parallel.html")
    looks = set()
    for address, kinds in (
        ("tensor-parallel", ["identical", "explained"]),
        ("pipeline-executor", ["trap"]),
    ):
        page.goto(f"file://{site}/beside/{address}.html")
        for kind in kinds:
            verdict = page.locator(f".v-{kind}").first
            edge = verdict.evaluate(
                "box => getComputedStyle(box).borderBlockStyle"
                " + getComputedStyle(box).borderBlockWidth"
            )
            looks.add((verdict.locator(".mark").inner_text(), edge))
        assert barriers(page, within=".verdict") == ""
    assert len(looks) == len({mark for mark, _ in looks}) == 3
    assert len({edge for _, edge in looks}) == 3


def test_a_verdict_speaks_spanish(site, open_page):
    page = open_page(f"file://{site}/beside/pipeline-executor.html")
    page.locator("#lang-es + label").click()
    expect(page.locator(f"{TRAP} .verdict .what")).to_contain_text("Una trampa")


def test_where_no_call_is_common_both_sides_stand_by_what_they_do(site, open_page):
    page = open_page(f"file://{site}/beside/zero.html")
    record = page.locator("#r-zero_fully_shard_stage3")
    rows = record.locator(".jobs tbody tr")
    expect(rows).to_have_count(2)
    borrowed = rows.filter(has_text="Stage 3")
    for said in ("forward: 3 × all-gather", "forward: 29 × broadcast", "as many bytes"):
        expect(borrowed).to_contain_text(said)
    record.get_by_role("button", name="Just show me").click()
    names = record.locator(".strip").first.locator(".phase-name").all_inner_texts()
    assert names == ["forward", "backward"]
    borrowed.get_by_role("link").click()
    page.wait_for_url("**#s8")

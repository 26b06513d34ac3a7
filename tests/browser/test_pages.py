"""Every kind of page: no complaint, no barrier, no sideways scroll; with and without
JavaScript, wide and narrow, light and dark, on paper."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from playwright.sync_api import expect

from tests.browser.barriers import barriers
from tests.quick import quick_first

pytestmark = pytest.mark.sampled

PLAIN = "read/pytorch/torch/distributed/fsdp/_limiter_utils.py.html"
LAYERS = "read/megatron/megatron/core/tensor_parallel/layers.py.html"
KINDS = {
    "start": "index.html",
    # Small ones: looking at the contrast of each word of a long file takes minutes.
    "annotated file": "read/megatron/megatron/core/transformer/mlp.py.html",
    "plain file": PLAIN,
    "mini": "read/minis/mini_impls/traffic.py.html",
    "uses": "read/megatron/megatron/core/transformer/mlp.py.uses.html",
    "tree": "read/megatron/index.html",
    "side by side": "beside/data-parallel.html",
    "list of mirrors": "beside/index.html",
    "chapter": "chapters/why-distributed.html",
    "chapters": "chapters/index.html",
    "estimates": "estimates.html",
    "lab": "labs/02.html",
    "labs": "labs/index.html",
    "paths": "paths.html",
    "concepts": "concepts.html",
    "references": "references.html",
    "quiz": "quiz.html",
    "quiz of a phase": "quiz/35.html",
    "topic": "quiz/35/layout.html",
}
LONG = ("side by side", "concepts", "topic")
LISTS = ("tree", "chapters", "labs", "list of mirrors", "references", "uses")
"""They are made of what the others show."""


def each_kind(*slow):
    return pytest.mark.parametrize(
        "page",
        [
            pytest.param(page, id=kind, marks=pytest.mark.slow if kind in slow else ())
            for kind, page in KINDS.items()
        ],
    )


PAINTED = "new Promise(done => requestAnimationFrame(() => setTimeout(done)))"


def overflow(page):
    """How far a page can be scrolled sideways, once it is as its screen has it."""
    page.evaluate(PAINTED)
    return page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )


@each_kind(
    *(*LONG, *LISTS, "annotated file", "plain file", "estimates"),
    *("paths", "quiz of a phase"),
)
def test_no_barrier_and_nothing_to_scroll_sideways(site, open_page, page):
    opened = open_page(f"file://{site}/{page}")
    assert barriers(opened) == ""
    opened.emulate_media(color_scheme="dark")
    assert barriers(opened, "color-contrast") == ""  # all else is the same in the dark
    for width in (360, 1280, 1920):
        opened.set_viewport_size({"width": width, "height": 900})
        assert overflow(opened) == 0, f"at {width} pixels"


@each_kind(*LONG)
def test_page_holds_without_javascript(site, open_page, page):
    opened = open_page(f"file://{site}/{page}", java_script_enabled=False)
    expect(opened.locator("h1")).to_be_visible()
    expect(opened.locator(".js-only").first).to_be_hidden()
    if "mlp.py.html" in page:
        expect(opened.locator("#mlp-column-then-row")).to_be_visible()
        opened.locator("#lang-es + label").click()
        opened.locator("#mlp-column-then-row .more > summary").click()
        expect(opened.get_by_text("Prueba").first).to_be_visible()


def test_scripts_and_styles_are_the_sites_own(site, open_page):
    page = open_page(f"file://{site}/{LAYERS}")
    policy = page.locator('meta[http-equiv="Content-Security-Policy"]')
    assert "default-src 'none'" in policy.get_attribute("content")
    expect(
        page.locator("script:not([src], [type='application/json']), [style], style")
    ).to_have_count(0)


def test_every_page_with_lines_of_an_upstream_names_holder_and_licence(site):
    owners = {
        "megatron": "NVIDIA CORPORATION",
        "megatron-training": "NVIDIA CORPORATION",
        "transformer-engine": "NVIDIA CORPORATION &amp; AFFILIATES",
        "pytorch": "the PyTorch contributors",
    }
    seen = set()
    for path in site.rglob("*.html"):
        if path.name.endswith(".uses.html"):
            continue
        html, _, foot = path.read_text().partition("<footer")
        lines = re.findall(r'data-site="([\w-]+):', html)
        if re.search(r'class="[^"]*file-page', html):
            lines.append(path.relative_to(site / "read").parts[0])
        for upstream in owners.keys() & lines:
            seen.add((path.parent.relative_to(site).parts[:1], upstream))
            assert owners[upstream] in foot, path
            assert "/LICENSE" in foot, path
    folders = {folder for folder, _ in seen}
    assert {(), ("read",), ("beside",), ("chapters",), ("quiz",)} <= folders


def test_no_page_names_a_folder_of_the_builder(site):
    for path in [*site.glob("*.html"), *site.glob("quiz/*.html"), site / PLAIN]:
        assert "site-packages" not in path.read_text().partition("<footer")[2], path


def test_paper_has_notes_and_no_bars(site, open_page):
    page = open_page(f"file://{site}/{LAYERS}")
    page.emulate_media(media="print")
    expect(page.locator(".top")).to_be_hidden()
    expect(
        page.locator("#tp-row-forward").get_by_text("Cost", exact=True)
    ).to_be_visible()
    last, after = (page.locator(f"#L{n}").bounding_box() for n in (1294, 1295))
    note = page.locator("#tp-row-forward").bounding_box()
    assert note["y"] >= last["y"] + last["height"]
    assert note["y"] + note["height"] <= after["y"] + 1


def test_a_site_works_from_any_folder(site, open_page, tmp_path):
    (tmp_path / "a b").mkdir()
    (tmp_path / "a b" / "site").symlink_to(site)
    page = open_page(f"file://{tmp_path}/a b/site/{LAYERS}")
    page.get_by_role("link", name="get_tensor_model_parallel_rank").first.click()
    page.wait_for_url("**/megatron/core/parallel_state.py.html#L1606")


OPEN_ALL = """document.querySelectorAll("details").forEach(each => each.open = true);
document.querySelectorAll(".record").forEach(each => each.classList.add("told"))"""
CUT_TEXTS = """texts => texts.filter(text => text.checkVisibility()).filter(text => {
    const box = text.getBoundingClientRect();
    const frame = text.closest(".chart").getBoundingClientRect();
    return box.left < frame.left - 1 || box.right > frame.right + 1;
}).map(text => text.textContent)"""


BROKEN_NUMBERS = """cells => cells.filter(cell => {
    const text = document.createRange();
    text.selectNodeContents(cell);
    const lines = Array.from(text.getClientRects(), box => Math.round(box.bottom));
    return new Set(lines).size > 1;
}).map(cell => cell.textContent)"""


@pytest.mark.slow
def test_evidence_is_whole_on_a_phone_and_on_a_wide_screen(site, open_page):
    page = open_page(f"file://{site}/chapters/why-distributed.html", width=360)
    texts, numbers = page.locator(".chart text"), page.locator("td.n")
    assert texts.evaluate_all(CUT_TEXTS) == []
    seen = Counter()
    for address in sorted(site.glob("beside/*.html")):
        page.goto(f"file://{address}")
        page.evaluate(OPEN_ALL)
        for width in (360, 1440):
            page.set_viewport_size({"width": width, "height": 900})
            assert texts.evaluate_all(CUT_TEXTS) == [], address
            assert numbers.evaluate_all(BROKEN_NUMBERS) == [], address
            assert overflow(page) == 0, address
        seen += {"texts": texts.count(), "numbers": numbers.count()}
    assert seen["texts"] > 500 and seen["numbers"] > 500


def test_on_a_phone_results_are_in_view_or_said_to_go_on(site, open_page):
    page = open_page(f"file://{site}/chapters/why-distributed.html", width=390)
    results = page.locator(".set-here td.value").all()
    assert results
    for result in results:
        box = result.bounding_box()
        assert box["x"] + box["width"] <= 390
    page.goto(f"file://{site}/estimates.html")
    table = page.locator("#memory table.grid").first
    for cell in table.locator("th[scope=col], tr:last-child > *").all():
        box = cell.bounding_box()
        assert box["x"] + box["width"] <= 390
    for language in ("en", "es"):
        page.locator(f"#lang-{language} + label").click()
        expect(page.locator("html")).to_have_attribute("lang", language)
        assert page.locator("#memory .chart text").evaluate_all(CUT_TEXTS) == []
    plan = page.locator("#plan .scroll").first
    assert plan.evaluate("box => box.scrollWidth > box.clientWidth")
    assert "gradient" in plan.evaluate("box => getComputedStyle(box).backgroundImage")


@pytest.mark.parametrize("page", quick_first(["labs/02.html", "estimates.html"]))
def test_what_is_folded_away_has_no_barrier_either(site, open_page, page):
    opened = open_page(f"file://{site}/{page}", width=420)
    summaries = opened.locator(".folded > summary")
    assert summaries.count() >= 2
    for summary in summaries.all()[:3]:
        summary.click()
    assert barriers(opened) == ""
    assert overflow(opened) == 0

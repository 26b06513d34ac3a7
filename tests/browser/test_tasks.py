"""What a reader comes for, done by clicks and keys on the shipped book, from disk."""

from __future__ import annotations

import posixpath
import re

import pytest
from playwright.sync_api import expect

from tests.browser.test_pages import overflow

pytestmark = pytest.mark.sampled

LAYERS = "read/megatron/megatron/core/tensor_parallel/layers.py.html"
UPSTREAM = "https://github.com/NVIDIA/Megatron-LM/blob/"
DESCRIPTION = '<meta name="description" content="([^"]+)">'
COVERED = """panel => {
    const box = panel.getBoundingClientRect(), under = new Set();
    for (let row = 1; row < 8; row += 1) for (let column = 1; column < 8; column += 1) {
        const x = box.left + box.width * column / 8, y = box.top + box.height * row / 8;
        if (x < 0 || y < 0 || x >= innerWidth || y >= innerHeight) continue;
        const top = document.elementFromPoint(x, y);
        if (!panel.contains(top)) under.add(top.outerHTML.slice(0, 80));
    }
    return Array.from(under);
}"""


@pytest.fixture
def layers(site, open_page):
    return open_page(f"file://{site}/{LAYERS}")


def search(page, words):
    page.keyboard.press("/")
    page.keyboard.type(words)
    expect(page.locator("#search-results a").first).to_be_visible()
    page.keyboard.press("Enter")


def ways(site, page):
    """Return where a page leads back and on."""
    html = (site / page).read_text().partition('<nav class="around"')[2]
    links = {rel: at for at, rel in re.findall(r'href="([^"]*)" rel="(\w+)"', html)}
    folder = posixpath.dirname(page)
    return [
        posixpath.normpath(posixpath.join(folder, links[rel])) if rel in links else ""
        for rel in ("prev", "next")
    ]


def test_next_leads_through_every_page_once_and_previous_leads_back(site):
    page, before, seen = "index.html", "", []
    while page:
        back, following = ways(site, page)
        assert (back, page in seen) == (before, False)
        seen.append(page)
        before, page = page, following
    read = {"paths.html", "concepts.html", "estimates.html", "references.html"}
    for folder in ("chapters", "tours", "labs", "beside", "quiz/35"):
        pages = (path.relative_to(site) for path in site.glob(f"{folder}/*.html"))
        read |= {str(path) for path in pages if path.stem != "index"}
    assert read <= {*seen}
    minis = [page for page in seen if page.startswith("read/minis/")]
    notes = [page for page in seen if page.startswith("read/") and page not in minis]
    assert len(minis) > 20 and len(notes) > 35


def test_a_chapter_leads_to_what_it_shows(site, open_page):
    page = open_page(f"file://{site}/chapters/why-distributed.html")
    akin = page.locator("aside.akin")
    code = akin.get_by_role("link", name="adam.py", exact=True)
    expect(code).to_have_attribute("href", re.compile("torch/optim/adam.py.html$"))
    akin.get_by_role("link", name="All-reduce in a ring").click()
    page.wait_for_url("**/mechanisms/ring-all-reduce.html")


def test_from_a_job_that_fails_to_its_idea_and_its_sum(site, open_page):
    page = open_page(f"file://{site}/index.html")
    page.get_by_role("link", name="Out of memory at the first").first.click()
    page.wait_for_url("**/paths.html#oom-at-first-step")
    symptom = page.locator("#oom-at-first-step")
    expect(symptom.locator("a[href^='concepts.html#']").first).to_be_visible()
    symptom.locator("a[href='estimates.html#memory']").click()
    page.wait_for_url("**/estimates.html#memory")


def test_a_tour_leads_on_to_what_is_about_the_same(site, open_page):
    page = open_page(f"file://{site}/tours/fsdp2-step.html")
    akin = page.get_by_role("complementary", name="About the same")
    assert akin.locator('a[href$="chapters/sharding-the-state.html"]').count() == 1
    way = page.get_by_role("navigation", name="On the way")
    expect(way.get_by_role("link")).to_have_count(2)


def test_lists_lead_to_their_first_page(site):
    for page in ("chapters/index.html", "labs/index.html", "beside/index.html"):
        _, first = ways(site, page)
        assert posixpath.dirname(first) == posixpath.dirname(page)
    assert ways(site, "beside/index.html") == ["", "beside/collectives.html"]


def test_the_overlap_of_tensor_parallelism_is_one_search_away(site, open_page):
    page = open_page(f"file://{site}/index.html")
    search(page, "overlap tp all-reduce")
    page.wait_for_url("**#tp-dgrad-overlap")
    expect(page.locator("#tp-dgrad-overlap .more")).to_have_attribute("open", "")


@pytest.mark.further
def test_uses_stand_with_their_lines_calls_before_imports(site, open_page):
    page = open_page(f"file://{site}/index.html")
    name = "reduce_scatter_to_sequence_parallel_region"
    search(page, name)
    page.wait_for_url("**/mappings.py.html#L*")
    page.locator(f'a[href*=".uses.html#{name}"]').first.click()
    page.wait_for_url(f"**.uses.html#{name}")
    uses = page.locator(f"#{name}")
    heads = [text.split()[0] for text in uses.locator("h3").all_inner_texts()]
    assert heads.index("Calls") < heads.index("Imports")
    line = uses.locator("h3:has-text('Calls') + ul li li").first
    assert f"{name}(" in line.inner_text()
    line.get_by_role("link").click()
    page.wait_for_url("**.py.html#L*")


def test_from_fsdp2_to_one_event_and_its_address(site, open_page):
    page = open_page(f"file://{site}/beside/fsdp.html")
    contents = page.get_by_role("navigation", name="On this page")
    contents.get_by_role("link", name="One all-gather for all parameters").click()
    expect(page.locator(".pair:target")).to_be_in_viewport()
    contents.get_by_role("link", name="fsdp", exact=False).last.click()
    record = page.locator(".record").first
    lines = page.locator("#sections").bounding_box()
    assert lines["y"] < record.bounding_box()["y"]
    record.locator(".reveal").click()
    record.locator("button.ev:visible, a.ev:visible").first.click()
    forms = record.locator(".picked .forms").first
    expect(forms.get_by_role("button", name="Page")).to_be_visible()
    page.wait_for_url("**#e-*")
    fragment = page.evaluate("location.hash")
    expect(forms.get_by_role("button", name="Page")).to_have_attribute(
        "data-text", re.compile(f"{re.escape(fragment)}$")
    )


def test_from_a_failing_job_to_the_lines_and_to_the_estimate(site, open_page):
    page = open_page(f"file://{site}/index.html")
    door = page.locator(".doors section").filter(has_text="My job fails")
    door.get_by_role("link", name=re.compile("memory", re.I)).first.click()
    page.wait_for_url("**/paths.html#*")
    page.locator(".symptom:target .note-lines a").first.click()
    page.wait_for_url("**/read/**")
    akin = page.get_by_role("complementary", name="About the same")
    akin.locator('a[href*="estimates.html#memory"]').click()
    page.wait_for_url("**/estimates.html#memory")
    section = page.locator("section#memory")
    assert section.locator('a[href*="concepts.html#bytes-per-param"]').count() == 1
    assert section.locator('a[href*="chapters/"]').count() > 0


def test_from_a_concept_to_chapter_notes_and_questions(site, open_page):
    page = open_page(f"file://{site}/concepts.html#tensor-parallel")
    concept = page.locator("#tensor-parallel")
    for address in ("chapters/", "quiz/35/tensor_parallel", "estimates.html#traffic"):
        assert concept.locator(f'a[href*="{address}"]').count() > 0, address
    concept.locator("summary", has_text="Notes").click()
    concept.locator(".note-lines a").first.click()
    page.wait_for_url("**/read/**#*")


def test_from_a_lab_to_its_mini_side_by_side_and_estimate(site, open_page):
    page = open_page(f"file://{site}/labs/01.html")
    akin = page.get_by_role("complementary", name="About the same")
    for name in ("ddp.py", "Data parallelism in buckets", "What a step sends"):
        expect(akin.get_by_role("link", name=name)).to_be_visible()
    way = page.get_by_role("navigation", name="On the way")
    way.get_by_role(
        "link", name="Next Lab 02: a token on one, two and four ranks"
    ).click()
    page.wait_for_url("**/labs/02.html")
    page.get_by_role("link", name="Previous Lab 01").click()
    page.wait_for_url("**/labs/01.html")


def test_the_lab_of_a_price_leads_to_prices_and_to_its_concept(site, open_page):
    page = open_page(f"file://{site}/labs/00.html")
    akin = page.get_by_role("complementary", name="About the same")
    for address in ("estimates.html#catalog", "concepts.html#training-cost"):
        assert akin.locator(f'a[href$="{address}"]').count() == 1, address


def test_lines_are_shared_without_scrolling(layers):
    layers.keyboard.press("g")
    layers.keyboard.type("1289-1292")
    layers.keyboard.press("Enter")
    layers.wait_for_url("**#L1289-L1292")
    expect(layers.locator("#L1289")).to_be_in_viewport()
    expect(layers.locator(".here .symbol")).to_have_text("RowParallelLinear.forward")
    layers.get_by_text("Copy link", exact=True).click()
    forms = layers.locator(".here .forms")
    texts = {
        form: forms.get_by_role("button", name=form).get_attribute("data-text")
        for form in ("Page", "Upstream", "Markdown")
    }
    assert texts["Page"].endswith("layers.py.html#L1289-L1292")
    path = "megatron/core/tensor_parallel/layers.py#L1289-L1292"
    assert re.fullmatch(rf"{UPSTREAM}[0-9a-f]{{40}}/{path}", texts["Upstream"])
    assert texts["Markdown"] == f"[`layers.py:1289-1292`]({texts['Upstream']})"
    forms.get_by_role("button", name="Upstream").click()
    expect(layers.get_by_role("status").filter(has_text="Copied")).to_have_count(1)


def test_a_note_is_shared_by_its_title(layers):
    layers.goto(layers.url.partition("#")[0] + "#tp-row-forward")
    note = layers.locator("#tp-row-forward")
    note.get_by_role("button", name="Copy a link to this note").click()
    markdown = layers.locator(".here .forms button[data-form=markdown]")
    title = note.locator('.title [lang="en"]').inner_text()
    expect(markdown).to_have_attribute(
        "data-text", re.compile(re.escape(f"): {title}") + "$")
    )


def test_the_outline_is_a_way_by_keys_alone(layers):
    summary = layers.locator(".outline summary")
    summary.focus()
    layers.keyboard.press("Enter")
    outline = layers.locator(".outline ol")
    noted = outline.get_by_role("link", name=re.compile(r"^forward.*, \d+ notes?$"))
    expect(noted.last).to_be_visible()
    noted.last.focus()
    layers.keyboard.press("Enter")
    layers.wait_for_url("**#L*")
    expect(outline).to_be_hidden()
    summary.focus()
    layers.keyboard.press("Enter")
    expect(outline).to_be_visible()
    layers.keyboard.press("Escape")
    expect(outline).to_be_hidden()
    expect(summary).to_be_focused()


PEEKED = 'a[href*="parallel_state.py.html#L"]'


def test_a_name_shows_what_it_means_by_pointer_and_by_key(layers):
    link, peek = layers.locator(f".code {PEEKED}").first, layers.locator("#peek")
    link.scroll_into_view_if_needed()
    link.hover()
    expect(peek).to_contain_text("def get_")
    expect(peek).to_contain_text("megatron/core/parallel_state.py:")
    assert peek.evaluate(COVERED) == []
    layers.keyboard.press("Escape")
    expect(peek).to_be_hidden()
    layers.mouse.move(0, 0)
    link.focus()
    expect(peek).to_contain_text("def ")
    expect(link).to_have_attribute("aria-describedby", "peek")


@pytest.mark.parametrize("width", [390, 768])
@pytest.mark.further
def test_menus_are_on_top_and_the_search_stays(layers, width):
    layers.set_viewport_size({"width": width, "height": 844})
    layers.goto(layers.url.partition("#")[0] + "#L1289")
    expect(layers.locator(".here .symbol")).to_have_text("RowParallelLinear.forward")
    for summary, panel in ((".outline summary", "ol"), (".copy summary", "div")):
        layers.locator(f".here {summary}").click()
        shown = layers.locator(f".here {summary.split()[0]} > {panel}")
        expect(shown).to_be_visible()
        assert shown.evaluate(COVERED) == []
        layers.keyboard.press("Escape")
    expect(layers.locator("#search")).to_be_in_viewport()
    layers.locator("#search").fill("RowParallelLinear")
    results = layers.locator("#search-results")
    expect(results.locator("a").first).to_be_visible()
    assert results.evaluate(COVERED) == []
    assert overflow(layers) == 0


def test_each_page_says_what_it_holds(site):
    said = {}
    for path in (*site.glob("*.html"), *site.glob("[blqc]*/*.html"), site / LAYERS):
        [about] = re.findall(DESCRIPTION, path.read_text())
        assert 20 < len(about) < 420, path
        said.setdefault(about, []).append(path)
    assert max(map(len, said.values())) == 1

"""What pages of files weigh, how soon they come and how still: rows of the table.

PYTHONPATH=. .venv/bin/python benchmarks/site/weight.py [SITE]
"""

from __future__ import annotations

import gzip
import re
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from readerkit.app.library import open_library
from readerkit.site.build import BuildCache, make_site
from readerkit.site.inputs import find_inputs
from readerkit.site.publish import publish
from tests.browser.which import NO_BROWSER, find_browser

SLOWER = 4
"""Times that a phone's processor takes what this one takes once."""
ROUNDS = 3
WATCH = """() => {
  window.shown = 0; window.moved = 0;
  new PerformanceObserver(list => list.getEntries().forEach(each => {
    window.shown = each.startTime;
  })).observe({ type: "largest-contentful-paint", buffered: true });
  new PerformanceObserver(list => list.getEntries().forEach(each => {
    window.moved += each.value;
  })).observe({ type: "layout-shift", buffered: true });
}"""
SCRIPTS = """Array.from(document.scripts, each => each.src).filter(Boolean)"""


def file_pages(site: Path) -> Iterator[tuple[Path, int]]:
    """Yield the page of each file that has lines, and how many."""
    for page in sorted((site / "read").rglob("*.html")):
        lines = len(re.findall(rb"<div id=L\d", page.read_bytes()))
        if lines:
            yield page, lines


def weigh(site: Path) -> None:
    pages = dict(file_pages(site))
    texts = [page.read_bytes() for page in pages]
    lines = sum(pages.values())
    plain, packed = (sum(map(len, each)) / lines for each in (texts, map(_gz, texts)))
    what = f"HTML a line, over {lines:,} lines of {len(pages)} files"
    print(
        f"| {what} | {plain:.1f} bytes, {packed:.1f} compressed | at most 110 bytes |"
    )


def _gz(text: bytes) -> bytes:
    return gzip.compress(text, 6)


def shown(site: Path, browser: Browser) -> None:
    """Largest paint of the longest page; what moves on one page of each kind."""
    largest = max(file_pages(site), key=lambda each: _size(each[0]))[0]
    for what, page in (
        ("longest page of code", largest),
        ("largest page of all", max(site.rglob("*.html"), key=_size)),
    ):
        times = sorted(_watched(browser, page.as_uri())[0] for _ in range(ROUNDS))
        print(
            f"| largest paint of the {what} ({page.name}, {_size(page) / 1e3:.0f} kB), "
            f"from disk, on a processor {SLOWER} times slower | "
            f"{statistics.median(times):.0f} ms, slowest of {ROUNDS} {times[-1]:.0f} "
            "ms | at most 1,000 ms |"
        )
    kinds = {page.parent: page for page in sorted(site.rglob("*.html"))}.values()
    few = [page for page in kinds if "read" not in page.parts] + [largest]
    moved = {page: _watched(browser, page.as_uri())[1] for page in few}
    most = max(moved, key=lambda page: moved[page])
    print(
        f"| what shifts while a page comes, of {len(few)} | {moved[most]:.3f} "
        f"({most.relative_to(site)}) | 0 |"
    )
    page = browser.new_page()
    page.goto(largest.as_uri())
    scripts = [Path(src.removeprefix("file://")) for src in page.evaluate(SCRIPTS)]
    weight = sum(each.stat().st_size for each in scripts) / 1e3
    print(f"| scripts of a reading page | {weight:.1f} kB | at most 60 kB |")
    page.close()


def _size(page: Path) -> int:
    return page.stat().st_size


def _watched(browser: Browser, address: str) -> tuple[float, float]:
    context = browser.new_context(viewport={"width": 390, "height": 844})
    opened = context.new_page()
    opened.add_init_script(f"({WATCH})()")
    session = context.new_cdp_session(opened)
    session.send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
    opened.goto(address)
    opened.wait_for_timeout(500)
    found = opened.evaluate("[window.shown, window.moved]")
    context.close()
    return float(found[0]), float(found[1])


def all_weights(site: Path) -> None:
    weigh(site)
    browser_path = find_browser()
    if browser_path is None:
        print(f"| how soon a page comes | not measured: {NO_BROWSER} | |")
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=browser_path, args=["--no-sandbox"]
        )
        shown(site, browser)
        browser.close()


def site_weights() -> None:
    """Build the shipped book's site, and weigh it."""
    with tempfile.TemporaryDirectory() as folder:
        made = make_site(open_library(), find_inputs(None), BuildCache())
        publish(Path(folder, "site"), {name: make() for name, make in made.items()}, "")
        all_weights(Path(folder, "site"))


if __name__ == "__main__":
    if sys.argv[1:]:
        all_weights(Path(sys.argv[1]).resolve())
    else:
        site_weights()

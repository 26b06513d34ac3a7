"""How soon the search answers: one row of the table."""

from __future__ import annotations

import csv
import statistics
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from readerkit.app.library import open_library
from readerkit.site.build import BuildCache, make_site
from readerkit.site.inputs import find_inputs
from readerkit.site.publish import publish
from tests.browser.which import NO_BROWSER, find_browser

QUERIES = Path("tests/browser/queries.csv")
ASK = """query => {
  const begin = performance.now();
  window.readerkit.find(query);
  return performance.now() - begin;
}"""


def one_search() -> None:
    """From a query to its results, those of the tests, by the clock."""
    what = "a query to its results, in Chromium, from disk"
    found = find_browser()
    if found is None:
        print(f"| {what} | not measured: {NO_BROWSER} | at most 30 ms |")
        return
    queries = [row["query"] for row in csv.DictReader(QUERIES.read_text().splitlines())]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        made = make_site(open_library(), find_inputs(None), BuildCache())
        publish(Path(folder, "site"), {name: make() for name, make in made.items()}, "")
        browser = playwright.chromium.launch(
            executable_path=found, args=["--no-sandbox"]
        )
        page = browser.new_page()
        page.goto(f"file://{folder}/site/index.html")
        page.locator("#search").fill("forward")
        page.locator("#search-results a").first.wait_for()
        taken = [page.evaluate(ASK, query) for query in queries]
        browser.close()
    middle, most = statistics.median(taken), max(taken)
    took = f"{middle:.1f} ms, slowest of {len(taken)} {most:.0f} ms"
    print(f"| {what} | {took} | at most 30 ms |")


if __name__ == "__main__":
    one_search()

"""How soon the estimates' page answers a changed control: one row of the table."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from readerkit.app.library import open_library
from readerkit.site.build import BuildCache, make_site
from readerkit.site.inputs import find_inputs
from readerkit.site.publish import publish
from tests.browser.which import NO_BROWSER, find_browser

CHANGES = [
    (name, value)
    for model in ("llama-2-70b", "mixtral-8x7b", "gpt3-175b", "deepseek-v3")
    for name, value in (
        ("model", model),
        *(("tp", each) for each in ("2", "4", "8")),
        *(("dp", each) for each in ("16", "8")),
        *(("zero", each) for each in ("3", "2", "0", "1")),
        *(("microbatches", each) for each in ("16", "32", "8")),
        *(("recompute", each) for each in ("full", "selective", "none")),
        ("tp", "1"),
    )
]
CHANGE = """([name, value]) => {
  const form = document.getElementById("setting");
  const begin = performance.now();
  form.elements[name].value = value;
  form.elements[name].dispatchEvent(new Event("input", {bubbles: true}));
  document.getElementById("answers").getBoundingClientRect();
  return performance.now() - begin;
}"""


def measure(address: str) -> tuple[list[float], float]:
    """Return the milliseconds of each change, and the mean of the page's own work."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_browser(), args=["--no-sandbox"]
        )
        page = browser.new_page()
        page.goto(address)
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})

        def busy() -> float:
            found = session.send("Performance.getMetrics")["metrics"]
            return next(
                float(each["value"]) for each in found if each["name"] == "TaskDuration"
            )

        before = busy()
        taken = [page.evaluate(CHANGE, [*change]) for change in CHANGES]
        work = 1000 * (busy() - before) / len(CHANGES)
        browser.close()
    return taken, work


def one_change() -> None:
    """From a changed control to four answers laid out, by the clock."""
    what = "a control changed to four answers, in Chromium, from disk"
    if find_browser() is None:
        print(f"| {what} | not measured: {NO_BROWSER} | | at most 50 ms |")
        return
    with tempfile.TemporaryDirectory() as folder:
        made = make_site(open_library(), find_inputs(None), BuildCache())
        wanted = {n for n in made if n == "estimates.html" or n.startswith("theme/")}
        publish(Path(folder, "site"), {name: made[name]() for name in wanted}, "")
        taken, work = measure(f"file://{folder}/site/estimates.html")
    middle, most = statistics.median(taken), max(taken)
    print(
        f"| {what} | {middle:.0f} ms, slowest of {len(taken)} {most:.0f} ms; "
        f"{work:.0f} ms of work | | at most 50 ms |"
    )


if __name__ == "__main__":
    one_change()

"""How soon the text of a saved note stands in an open page: one row of the table."""

from __future__ import annotations

import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import sync_playwright

from readerkit.app.library import open_library
from tests.browser.which import NO_BROWSER, find_browser


def one_note() -> None:
    """From a saved note to its text in a page open in a browser, by the clock."""
    what = "a note saved to its text in an open page of Chromium"
    found = find_browser()
    if found is None:
        print(f"| {what} | not measured: {NO_BROWSER} | at most 200 ms |")
        return
    address = "read/megatron/megatron/core/tensor_parallel/layers.py.html"
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as server:
        note = Path(folder) / "annotations" / "megatron" / "tensor_parallel.yaml"
        text = note.read_text("utf-8")
        taken = []
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=found, args=["--no-sandbox"]
            )
            page = browser.new_page()
            page.goto(server + address)
            for number in range(12):
                time.sleep(1)
                new = f"Switch {number} picks"
                begin = time.time()
                note.write_text(text.replace("One switch picks", new))
                shown = page.evaluate(WHEN_SHOWN, new) / 1e3
                taken.append(shown - begin)
            browser.close()
    slowest = max(taken[2:])
    print(
        f"| {what} | {statistics.median(taken[2:]) * 1e3:.0f} ms, slowest of 10 "
        f"{slowest * 1e3:.0f} ms | at most 200 ms |"
    )


WHEN_SHOWN = """text => new Promise(tell => {
  const note = document.querySelector("#tp-row-forward");
  const look = () => note.textContent.includes(text) && requestAnimationFrame(
    () => tell(Date.now()));
  new MutationObserver(look).observe(note, {childList: true, subtree: true});
  look();
})"""


@contextmanager
def serving(book: Path) -> Iterator[str]:
    """Serve a copy of the shipped book; give the server's address."""
    for name in ("annotations", "site"):
        shutil.copytree(open_library().root / name, book / name)
    command = ["site", "serve", "--port", "0", "--book", str(book)]
    server = subprocess.Popen(
        [sys.executable, "-m", "readerkit", *command], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    try:
        yield server.stdout.readline().split()[0]
    finally:  # whatever failed, nothing goes on
        server.send_signal(signal.SIGINT)
        server.wait(60)


if __name__ == "__main__":
    one_note()

"""Make the picture of the reading site that the README shows.

    .venv/bin/python tools/picture.py

It needs the extra ``test`` and a Chromium, and the upstreams in the cache.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browser.which import NO_BROWSER, find_browser

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "reading-site.png"
PAGE = "read/megatron/megatron/core/tensor_parallel/layers.py.html#tp-row-forward"


def main() -> None:
    browser = find_browser()
    if browser is None:
        sys.exit(NO_BROWSER)
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder) / "site"
        command = [sys.executable, "-m", "readerkit", "site", "build"]
        subprocess.run([*command, "--output", str(site)], check=True)
        take(browser, f"file://{site}/{PAGE}")
    print(f"{PICTURE}: {PICTURE.stat().st_size:,} bytes")


def take(browser: str, address: str) -> None:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path=browser, args=["--no-sandbox"]
        )
        page = opened.new_page(viewport={"width": 1280, "height": 760})
        page.goto(address)
        page.wait_for_timeout(500)
        page.screenshot(path=PICTURE)
        opened.close()


if __name__ == "__main__":
    main()

"""The browser that tests and benchmarks open pages in: the system's own."""

from __future__ import annotations

import shutil

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
NO_BROWSER = f"no browser: none of {', '.join(NAMES)} is installed"


def find_browser() -> str | None:
    """Return where it is."""
    return next(filter(None, map(shutil.which, NAMES)), None)

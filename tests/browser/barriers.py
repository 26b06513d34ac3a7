"""What keeps a reader out of a page, as axe-core finds it."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

OPTIONS = {
    # It would ask for stylesheets in a way that a file may not.
    "preload": False,
    # To describe what is in order takes as long as to find what is not.
    "resultTypes": ["violations"],
}


def barriers(page: Page, *rules: str) -> str:
    """Return what is wrong with a page as it stands; empty: nothing.

    Only of ``rules`` if any are named, of all of them otherwise.
    """
    options = OPTIONS | ({"runOnly": list(rules)} if rules else {})
    found = Axe().run(page, options=options)
    return str(found.generate_report()) if found.violations_count else ""

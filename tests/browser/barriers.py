"""What keeps a reader out of a page, as axe-core finds it."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page

OPTIONS = {
    # It would ask for stylesheets in a way that a file may not.
    "preload": False,
    # To describe what is in order takes as long as to find what is not.
    "resultTypes": ["violations"],
}


def barriers(shown: Page | Locator, *rules: str, within: str = "") -> str:
    """Return what is wrong with a page, its parts of a kind, or a part with an id.

    Only of ``rules`` if any are named, of all of them otherwise; empty: nothing.
    """
    options = OPTIONS | ({"runOnly": list(rules)} if rules else {})
    if isinstance(shown, Page):
        found = Axe().run(shown, context=within or None, options=options)
    else:
        part = f"#{shown.get_attribute('id')}"
        found = Axe().run(shown.page, context=part, options=options)
    return str(found.generate_report()) if found.violations_count else ""

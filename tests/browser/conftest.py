"""A real browser on a real site: the shipped book, built once for all tests here."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from readerkit.app.library import open_library
from readerkit.site.build import BuildCache, make_site
from readerkit.site.inputs import find_inputs
from readerkit.site.publish import publish
from tests.browser.which import NO_BROWSER, find_browser
from tests.conftest import REAL_CACHE
from tests.helpers import made_once, make_book

ARGUMENTS = [
    "--no-sandbox",  # nobody else's pages are opened, and a container's root has none
    "--disable-gpu",
    # Each page would start a second renderer, for a next page that is another's.
    "--disable-features=SpareRendererForSitePerProcess,PaintHolding,MediaRouter",
]

SPANISH = """\
close:
  title: El colectivo que cierra
  decision: Un conmutador lo elige.
"""
SPANISH_CONCEPTS = """\
all-reduce: {title: Suma entre todos, summary: Todos reciben la suma.}
"""


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The system's Chromium; without one these tests are skipped, and say so."""
    found = find_browser()
    if found is None:
        if os.environ.get("READERKIT_BROWSER") == "required":
            pytest.fail(NO_BROWSER)
        pytest.skip(NO_BROWSER)
    expect.set_options(timeout=30_000)  # as long as an action may take
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield browser
        browser.close()


def write_site(folder: Path, book: Path | None) -> Path:
    """Build a site into a folder and return it."""
    inputs = find_inputs(book)
    made = make_site(open_library(book, quiet=True), inputs, BuildCache())
    publish(folder, {address: make() for address, make in made.items()}, "")
    return folder


@pytest.fixture(scope="session")
def site(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of the shipped book on the real upstreams."""

    def make(folder: Path) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("READERKIT_CACHE", str(REAL_CACHE))
            patch.setenv("READERKIT_DATA", str(tmp_path_factory.mktemp("data")))
            write_site(folder / "site", None)

    return made_once(tmp_path_factory, "shipped", make) / "site"


@pytest.fixture(scope="session")
def small_site(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of a small book of which one note and one concept are translated."""
    folder = tmp_path_factory.mktemp("small")
    more = {"sample/linear.es.yaml": SPANISH, "concepts.es.yaml": SPANISH_CONCEPTS}
    book = make_book(folder, more=more)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("READERKIT_CACHE", str(folder / "cache"))
        patch.setenv("READERKIT_DATA", str(folder / "data"))
        return write_site(folder / "site", book.root)


Open = Callable[..., Page]


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """Open pages as a reader would; any complaint of the browser fails the test."""
    contexts = []
    complaints: list[str] = []

    def open_one(address: str, *, width: int = 1280, **options: object) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, **options
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda said: complaints.append(f"{said.type}: {said.text}"))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda asked: complaints.extend(_foreign(asked.url)))
        page.goto(address)
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert complaints == []


def _foreign(url: str) -> list[str]:
    own = url.startswith(("file://", "http://127.0.0.1:", "blob:"))
    return [] if own else [f"a request left the machine: {url}"]

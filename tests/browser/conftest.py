"""A real browser on a real site: the shipped book, built once for all tests here."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import (
    Browser,
    Page,
    ViewportSize,
    expect,
    sync_playwright,
)

from readerkit.app.library import open_library
from readerkit.site.build import BuildCache, make_site
from readerkit.site.inputs import find_inputs
from readerkit.site.publish import publish
from tests.browser.which import NO_BROWSER, find_browser
from tests.conftest import REAL_CACHE
from tests.helpers import CONCEPTS, made_once, make_book

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
    # Who names an estimate has the page of them.
    concepts = CONCEPTS.replace("requires:", "estimates: [memory], requires:")
    more = {"sample/linear.es.yaml": SPANISH, "concepts.es.yaml": SPANISH_CONCEPTS}
    book = make_book(folder, more={**more, "concepts.yaml": concepts})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("READERKIT_CACHE", str(folder / "cache"))
        patch.setenv("READERKIT_DATA", str(folder / "data"))
        return write_site(folder / "site", book.root)


Open = Callable[..., Page]


class Desktop:
    """A browser's pages. One that was used is used again, for starting one is dear."""

    def __init__(self, browser: Browser) -> None:
        self.complaints: list[str] = []
        self._browser = browser
        self._plain: list[Page] = []
        """As new: nothing of an earlier test is left."""
        self._opened: list[tuple[Page, bool]] = []

    def open(self, address: str, *, width: int = 1280, **options: object) -> Page:
        is_plain = not options
        viewport = ViewportSize(width=width, height=900)
        if is_plain and self._plain:
            page = self._plain.pop()
            page.set_viewport_size(viewport)
        else:
            page = self._new(viewport, **options)
        self._opened.append((page, is_plain))
        page.goto(address)
        return page

    def _new(self, viewport: ViewportSize, **options: object) -> Page:
        page = self._browser.new_context(viewport=viewport, **options).new_page()
        say = self.complaints.append
        page.on("console", lambda said: say(f"{said.type}: {said.text}"))
        page.on("pageerror", lambda error: say(str(error)))
        page.on("request", lambda asked: self.complaints.extend(_foreign(asked.url)))
        return page

    def tidy(self) -> None:
        """Close what was opened, or make it as new."""
        for page, is_plain in self._opened:
            if is_plain and not page.is_closed():
                _forget(page)
                self._plain.append(page)
            else:
                page.context.close()
        self._opened = []


def _forget(page: Page) -> None:
    """Leave a page as one that was never used."""
    page.unroute_all(behavior="ignoreErrors")
    here = page.evaluate("location.origin")
    page.goto("about:blank")
    session = page.context.new_cdp_session(page)
    for origin in {"file://", here} - {"null"}:
        asked = {"origin": origin, "storageTypes": "all"}
        session.send("Storage.clearDataForOrigin", asked)
    session.detach()
    page.emulate_media(media="null", color_scheme="null")
    page.mouse.move(-1, -1)


@pytest.fixture(scope="session")
def desktop(browser: Browser) -> Desktop:
    """The pages of all tests."""
    return Desktop(browser)


@pytest.fixture
def open_page(desktop: Desktop) -> Iterator[Open]:
    """Open pages as a reader would; any complaint of the browser fails the test."""
    desktop.complaints.clear()
    yield desktop.open
    said = list(desktop.complaints)
    desktop.tidy()
    assert said == []


def _foreign(url: str) -> list[str]:
    own = url.startswith(("file://", "http://127.0.0.1:", "blob:"))
    return [] if own else [f"a request left the machine: {url}"]

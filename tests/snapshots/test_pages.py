"""Pages of a small site, whole, held against what they were when last looked at.

After a change that is meant run ``python -m tests.snapshots.test_pages``, and read what
differs.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pytest

from readerkit.app.library import open_library
from readerkit.site.build import BuildCache, make_site
from readerkit.site.inputs import find_inputs
from tests.helpers import SampleBook, write_files
from tests.served_quiz import make_quiz_book
from tests.snapshots.book import FILES, MINIS, add_upstream, record_of

SAVED = Path(__file__).parent / "pages"
PAGES = {
    "start": "index.html",
    "chapter": "chapters/sums.html",
    "lab": "labs/00.html",
    "paths": "paths.html",
    "concepts": "concepts.html",
    "references": "references.html",
    "file": "read/sample/lib/linear.py.html",
    "mini": "read/minis/mini_impls/sums.py.html",
    "tree": "read/sample/index.html",
    "beside": "beside/closing.html",
    "quiz": "quiz/7.html",
}


def make_pages(folder: Path) -> dict[str, str]:
    """Return each page of PAGES of a site whose book lies in ``folder``."""
    book = make_quiz_book(folder)
    write_files(book.root, FILES)
    add_upstream(book, MINIS)
    name = "sums_sample"
    write_files(book.root, {f"annotations/records/{name}.json": record_of(book, name)})
    made = make_site(
        open_library(book.root, quiet=True), find_inputs(book.root), BuildCache()
    )
    return {name: _settled(made[at]().decode(), book) for name, at in PAGES.items()}


def _settled(html: str, book: SampleBook) -> str:
    """Return a page without what differs from one folder to the next."""
    return html.replace(book.repository.as_uri(), "https://example.org/sample")


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("snapshots")
        patch.setenv("READERKIT_CACHE", str(folder / "cache"))
        patch.setenv("READERKIT_DATA", str(folder / "data"))
        patch.setenv("READERKIT_SCHEMES", "file")
        return make_pages(folder)


@pytest.mark.parametrize("name", PAGES)
def test_page_is_as_it_was(pages, name):
    saved = SAVED / f"{name}.html"
    was = saved.read_text("utf-8") if saved.exists() else ""
    assert pages[name] == was, (
        f"{saved} differs: if that is meant, run "
        "'python -m tests.snapshots.test_pages' and read the diff"
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made, pytest.MonkeyPatch.context() as env:
        env.setenv("READERKIT_CACHE", f"{made}/cache")
        env.setenv("READERKIT_DATA", f"{made}/data")
        env.setenv("READERKIT_SCHEMES", "file")
        for page, text in make_pages(Path(made)).items():
            (SAVED / f"{page}.html").write_text(text, "utf-8")
            sys.stdout.write(f"{SAVED / page}.html\n")

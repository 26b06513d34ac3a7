"""Where a name leads, and what the page of uses says of it."""

from __future__ import annotations

import re

import pytest

from readerkit.app.library import open_library
from readerkit.site.build import BuildCache, make_site
from readerkit.site.inputs import find_inputs
from tests.helpers import make_book

FILES = {
    "lib/there.py": "def close(): ...\n",
    "lib/here.py": (
        "try:\n    from lib.there import close\n    from gone import rest\n"
        "except ImportError:\n    close = None\n    rest = None\n"
        "rest(close())\nHAVE = 1\nHAVE = 2\nprint(HAVE)\n"
    ),
}

USES = (
    "Calls 1 lib/here.py 7 rest(close()) "
    "Imports 1 lib/here.py 2 from lib.there import close"
)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """From a path of the sample to the text of a page, without Spanish and tags."""
    folder = tmp_path_factory.mktemp("uses")
    book = make_book(folder, files=FILES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("READERKIT_CACHE", str(folder / "cache"))
        patch.setenv("READERKIT_DATA", str(folder / "data"))
        made = make_site(
            open_library(book.root, quiet=True), find_inputs(book.root), BuildCache()
        )
        return {
            address: made[address]().decode()
            for address in made
            if address.startswith("read/sample/lib/")
        }


def section(pages, path, name):
    """What the page of uses says of a name, as a reader sees it."""
    html = pages[f"read/sample/lib/{path}.uses.html"]
    found = re.search(f'<section class="uses" id="{name}">(.*?)</section>', html, re.S)
    english = re.sub(r"<span class=b lang=es>.*?</span>", "", found[1])
    return " ".join(re.sub(r"<[^>]*>", "", english).split())


def test_a_name_with_candidates_leads_to_the_list_of_them(pages):
    html = pages["read/sample/lib/here.py.html"]
    lines = dict(re.findall(r"<div id=L(\d+)[^>]*>(.*)</div>", html))
    assert "<a href=here.py.uses.html#close>close</a>()" in lines["7"]
    assert "<a href=here.py.uses.html#rest>rest</a>(" in lines["7"]
    assert "(<a href=here.py.uses.html#HAVE>HAVE</a>)" in lines["10"]
    assert "<a href=here.py.uses.html#HAVE>HAVE</a> = " in lines["8"]


def test_every_candidate_is_listed(pages):
    assert section(pages, "here.py", "HAVE") == (
        "HAVE Several definitions; syntax alone cannot tell which is meant; "
        "lines 8, 9. Lines that use it: 1 Other uses 1 lib/here.py 10 print(HAVE)"
    )
    may = "Some of these uses may mean another definition; syntax alone cannot tell:"
    assert section(pages, "here.py", "close") == (
        f"close Defined at line 5. {may} lib/there.py: 1 Lines that use it: 2 {USES}"
    )
    assert section(pages, "there.py", "close") == (
        f"close Defined at line 1. {may} lib/here.py: 5 Lines that use it: 2 {USES}"
    )
    assert section(pages, "here.py", "rest") == (
        f"rest Defined at line 6. {may} gone: imported, and not defined here "
        "Lines that use it: 2 Calls 1 lib/here.py 7 rest(close()) "
        "Imports 1 lib/here.py 3 from gone import rest"
    )


def test_whose_the_lines_are_is_said(pages):
    foot = pages["read/sample/lib/there.py.uses.html"].partition("<footer")[2]
    assert "© Nobody" in foot and "MIT" in foot


def test_what_a_definition_looks_like_is_at_hand(pages):
    script = pages["read/sample/lib/there.py.peek.js"]
    assert script == (
        'readerkitPeek("read/sample/lib/there.py.html",{"1":["def close(): ..."]});\n'
    )
    looks = pages["read/sample/lib/here.py.peek.js"]
    assert '"8":["HAVE = 1"],"9":["HAVE = 2"]' in looks

"""A note written in the page of a served site, on the lines that are chosen."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from pathlib import Path
from urllib.error import HTTPError

import pytest
import yaml
from playwright.sync_api import expect

from readerkit.app.library import open_library
from tests.browser.barriers import barriers
from tests.browser.test_live import make_live_book
from tests.helpers import WAIT_S, make_book, serving
from tests.readerkit.commands.test_site import FILE

pytestmark = pytest.mark.sampled

LINES = "#L12-L13"
OPEN = urllib.request.build_opener(urllib.request.ProxyHandler({})).open


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("write")
    book = make_live_book(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("READERKIT_CACHE", str(folder / "cache"))
        patch.setenv("READERKIT_DATA", str(folder / "data"))
        before = tree(book.root)
        with serving(book) as port:
            yield port, folder / "data" / "book" / "annotations" / "sample", book
        assert tree(book.root) == before  # the book that is read is never written to


def tree(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture
def page(served, browser):
    """A page that may hear of refusals: the browser logs them."""
    page = browser.new_context(viewport={"width": 1200, "height": 900}).new_page()
    page.goto(f"http://127.0.0.1:{served[0]}/{FILE}{LINES}")
    yield page
    page.context.close()


def begin(page):
    page.get_by_role("button", name="Write a note here").click()
    return page.locator("form.write")


def test_a_note_is_written_on_the_chosen_lines_and_stands_there(served, page):
    form = begin(page)
    expect(form).to_contain_text("readerkit note lib/linear.py:12-13")
    assert barriers(page) == ""
    form.get_by_label("Title").fill("Mine")
    form.get_by_role("button", name="Write it").click()
    refusal = form.get_by_role("alert")
    expect(refusal).to_contain_text("wrong value for 'text': got '', expected")
    expect(refusal).to_contain_text("wrong value for 'concepts': got []")
    assert not served[1].exists()

    page.reload()  # what was typed is kept
    expect(form.get_by_label("Title")).to_have_value("Mine")
    text = "It multiplies: \"so\" 'it' # is\n\n- {id: [}"
    form.get_by_label("Text").fill(text)
    form.get_by_label("Concepts").fill("all-reduce")
    form.get_by_role("button", name="Write it").click()
    note = page.locator("aside#my-note")
    expect(note).to_contain_text("It multiplies")
    expect(note).to_contain_text("yours")
    page.wait_for_url("**#my-note")
    expect(form).to_be_hidden()
    [entry] = yaml.safe_load((served[1] / "my-notes.yaml").read_text())
    assert (entry["title"], entry["text"]) == ("Mine", text)
    page.wait_for_function("!Object.keys(localStorage).some(k => k.includes('draft'))")


@pytest.mark.further
def test_kinds_ask_for_their_own_fields_and_a_draft_can_be_discarded(page):
    form = begin(page)
    expect(form.get_by_label("Cost")).to_be_hidden()
    form.get_by_label("citation").check()
    expect(form.get_by_label("Text", exact=True)).to_be_hidden()
    form.get_by_label("Cost").fill("Much.")
    form.get_by_role("button", name="Discard").click()
    expect(form).to_be_hidden()
    page.reload()
    expect(page.get_by_role("button", name="Write a note here")).to_be_visible()
    expect(form).to_be_hidden()


@pytest.mark.further
def test_of_a_page_of_other_bytes_no_line_is_taken(served, page):
    form = begin(page)
    form.get_by_label("Title").fill("Late")
    form.get_by_label("Text").fill("Words.")
    form.get_by_label("Concepts").fill("all-reduce")
    before = tree(served[1].parent.parent)
    script = page.locator("script[data-digest]")
    script.evaluate("script => { script.dataset.digest = '0'.repeat(40); }")
    form.get_by_role("button", name="Write it").click()
    refusal = form.get_by_role("alert")
    expect(refusal).to_contain_text("have changed since the page was made")
    assert tree(served[1].parent.parent) == before
    page.reload()  # now of today's bytes: the text is there, its lines are chosen anew
    expect(form.get_by_label("Title")).to_have_value("Late")


@pytest.mark.parametrize(
    ("body", "origin", "status"),
    [
        (b"{}", "http://elsewhere.example", 403),
        (b"{}", None, 403),
        (b"[", "own", 400),
        (b'{"kind": "note", "first": 0, "last": 1}', "own", 400),
        (b'{"kind": "note", "first": true, "last": 1}', "own", 400),
        (b'{"kind": "sitation", "first": 1, "last": 1}', "own", 400),
        (b'{"kind": "note", "first": 1, "last": 1, "title": "\\ud800"}', "own", 400),
        (b'{"kind": "note", "first": 1, "last": 1, "upstream": "../x"}', "own", 422),
        (
            b'{"kind": "note", "first": 1, "last": 1, "upstream": "sample", '
            b'"path": "../../etc/passwd"}',
            "own",
            422,
        ),
    ],
)
def test_what_is_no_form_of_the_page_is_refused(served, body, origin, status):
    port, mine, _ = served
    before = tree(mine.parent.parent)
    asked = urllib.request.Request(f"http://127.0.0.1:{port}/-/note", body)
    if origin:
        own = f"http://127.0.0.1:{port}"
        asked.add_header("Origin", own if origin == "own" else origin)
    with pytest.raises(HTTPError) as refused:
        OPEN(asked, timeout=WAIT_S)
    refused.value.close()
    assert refused.value.code == status
    assert tree(mine.parent.parent) == before


def test_a_fault_stands_in_sight_and_moves_nothing(served, page):
    mine = served[1]
    page.evaluate("document.querySelector('.foot').style.height = '3000px'")
    page.evaluate("scrollTo(0, 200)")
    before = page.locator("#close").bounding_box()
    mine.mkdir(parents=True, exist_ok=True)
    faulty = mine / "faulty.yaml"
    faulty.write_text("- {id: [}\n")
    try:
        alert = page.locator("#fault")
        expect(alert).to_contain_text("faulty.yaml:")
        expect(alert).to_be_in_viewport()
        after = page.locator("#close").bounding_box()
        assert after == pytest.approx(before, abs=1)  # a bar would be 40 pixels
    finally:
        faulty.unlink()
    expect(alert).to_be_hidden()


def test_gzip_is_for_who_understands_it(served):
    for wanted, coding in [
        ("gzip, br", "gzip"),
        ("br;q=1.0, *;q=0.1", "gzip"),
        ("gzip;q=0, *", None),
        ("gzip;q=0.0", None),
        ("br", None),
        ("", None),
    ]:
        asked = urllib.request.Request(f"http://127.0.0.1:{served[0]}/{FILE}")
        asked.add_header("Accept-Encoding", wanted)
        with OPEN(asked, timeout=WAIT_S) as answer:
            assert answer.headers["Content-Encoding"] == coding, wanted
            assert answer.headers["Vary"] == "Accept-Encoding"


WRITE = """
import os, sys
from pathlib import Path
from readerkit.app import new_note
from readerkit.app.library import open_library
from readerkit.errors import ReaderkitError
from readerkit.site.write_note import NoteForm, digest_of, take
book = Path(sys.argv[1])
end = lambda *_, **__: os._exit(9)
setattr(new_note, sys.argv[2], end)
digest = digest_of(open_library(book), "sample", "lib/linear.py")
typed = {"upstream": "sample", "path": "lib/linear.py", "digest": digest,
         "kind": "note", "title": "Mine", "text": "t", "concepts": sys.argv[3]}
try:
    take(NoteForm(typed, 12, 13), book)
except ReaderkitError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("at", "concept", "status", "notes"),
    [
        ("write_atomically", "all-reduce", 9, []),  # before the note is there
        ("lock_as_read", "all-reduce", 9, ["Mine"]),  # after it: whole, yet to review
        ("write_atomically", "nonsense", 0, []),  # what is refused was never written
    ],
)
def test_a_process_that_is_killed_leaves_no_half_a_note(
    at, concept, status, notes, tmp_path
):
    book = make_book(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", WRITE, str(book.root), at, concept],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stderr
    assert ("nonsense" in done.stdout) == (concept == "nonsense")
    own = open_library(book.root, whole=True).book.annotations.values()
    assert [note.title for note in own if note.mine] == notes

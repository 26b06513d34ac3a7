"""A served page follows the files that it is made of."""

from __future__ import annotations

import os
import shutil
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.helpers import ANNOTATIONS, SampleBook, make_book, serving
from tests.readerkit.commands.test_site import FILE, ask
from tests.terminals import WAIT_S

pytestmark = pytest.mark.sampled

SITE = Path(__file__).parents[2] / "site"


@dataclass
class Live:
    """One server for many tests, and its files as they were."""

    book: SampleBook
    port: int
    data: Path
    files: dict[Path, bytes]
    tests: int = 0

    @property
    def address(self):
        return f"http://127.0.0.1:{self.port}/{FILE}"

    def begin_afresh(self):
        """Undo what was written, and wait until the server has taken that up."""
        self.tests += 1
        own, read = self.data / "book" / "annotations", self.data / "read.json"
        had_own = own.exists() or read.exists()
        shutil.rmtree(own, ignore_errors=True)
        read.unlink(missing_ok=True)
        new = files_of(self.book) - self.files.keys()
        for path in new:
            path.unlink()
        other = [p for p, data in self.files.items() if p.read_bytes() != data]
        for path in other:
            path.write_bytes(self.files[path])
        mark = f"Forward, then backward, in test {self.tests}."
        text = ANNOTATIONS.replace("Forward, then backward.", mark)
        self.book.path("sample/linear.yaml").write_text(text)
        deadline = time.monotonic() + WAIT_S
        while mark not in ask(self.port, f"/{FILE}")[1]:
            assert time.monotonic() < deadline, "the server does not follow"
            time.sleep(0.05)
        # Once more, for those alone.
        while (new or other or had_own) and self.is_building():
            assert time.monotonic() < deadline, "the server does not rest"

    def is_building(self):
        """Tell whether another build came within half a second."""
        before = ask(self.port, f"/{FILE}")[1]
        time.sleep(0.5)
        return ask(self.port, f"/{FILE}")[1] != before


def files_of(book):
    return {path for path in book.root.rglob("*") if path.is_file()}


def make_live_book(folder):
    book = make_book(folder)
    for name in ("templates", "theme"):
        shutil.copytree(SITE / name, book.root / "site" / name)
    return book


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    folder = tmp_path_factory.mktemp("live")
    book, data = make_live_book(folder), folder / "data"
    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("READERKIT_CACHE", str(folder / "cache"))
            patch.setenv("READERKIT_DATA", str(data))
            port = stack.enter_context(serving(book))
        files = {path: path.read_bytes() for path in files_of(book)}
        yield Live(book, port, data, files)


@pytest.fixture
def book(live, monkeypatch):
    monkeypatch.setenv("READERKIT_DATA", str(live.data))
    live.begin_afresh()
    return live.book


@pytest.fixture
def page(live, book, open_page):
    def is_second_look(answer):
        return answer.url.endswith(FILE) and answer.request.resource_type == "fetch"

    page = open_page("about:blank", width=1400)
    # What is written before both have come may be part of what it begins with.
    with (
        page.expect_response("**/-/changes*"),
        page.expect_response(is_second_look) as second_look,
    ):
        page.goto(live.address)
    second_look.value.finished()
    page.evaluate("window.sameDocument = true")
    yield page
    page.close()


def is_same_document(page):
    return page.evaluate("window.sameDocument === true")


def test_the_text_of_a_note_changes_where_it_stands(book, page):
    changed = ANNOTATIONS.replace("One switch picks it.", "One *flag* does.")
    changed = changed.replace("The closing collective", "What closes the block")
    book.path("sample/linear.yaml").write_text(changed)
    page.locator(".code .note").get_by_text("One flag does.").wait_for()
    expect(page.locator(".code .note em").get_by_text("flag")).to_have_count(1)
    expect(
        page.locator(".contents").get_by_text("What closes the block")
    ).to_have_count(1)
    assert is_same_document(page)


def test_words_stand_in_the_page_before_the_site_is_whole(book, page):
    changed = ANNOTATIONS.replace("One switch picks it.", "One flag does.")
    broken = changed.replace('section: "3"', 'section: "99"')
    book.path("sample/linear.yaml").write_text(broken)
    page.locator(".code .note").get_by_text("One flag does.").wait_for()
    page.get_by_role("alert").get_by_text("99").wait_for()
    assert is_same_document(page)
    book.path("sample/linear.yaml").write_text(changed)
    page.get_by_role("alert").wait_for(state="hidden")
    expect(page.locator(".code .note").get_by_text("One flag does.")).to_have_count(1)
    assert is_same_document(page)


@pytest.mark.further
def test_spanish_words_stand_in_the_page_when_they_are_saved(book, page):
    sidecar = book.path("sample/linear.es.yaml")
    sidecar.write_text("close:\n  decision: Un interruptor.\n")
    page.locator(".code .note [lang=es]").get_by_text("Un interruptor.").wait_for(
        state="attached"
    )
    page.wait_for_load_state("networkidle")
    page.evaluate("window.sameDocument = true")
    sidecar.write_text("close:\n  decision: Una bandera.\n")
    page.locator(".code .note [lang=es]").get_by_text("Una bandera.").wait_for(
        state="attached"
    )
    assert is_same_document(page)


def test_nothing_is_made_anew_where_no_file_is_another(book, live):
    book.path("sample/linear.yaml").chmod(0o600)
    assert not live.is_building()


@pytest.mark.further
def test_what_was_unfolded_stays_so(book, page):
    page.locator("#close details summary").first.click()
    changed = ANNOTATIONS.replace("Half the bytes.", "Half of them.")
    book.path("sample/linear.yaml").write_text(changed)
    page.locator("#close").get_by_text("Half of them.").wait_for()  # to be visible
    assert is_same_document(page)


def say_otherwise(book, page):
    """Change a note that is shown."""
    changed = ANNOTATIONS.replace("One switch picks it.", "One flag does.")
    book.path("sample/linear.yaml").write_text(changed)
    page.locator("#close").get_by_text("One flag does.").wait_for()
    assert is_same_document(page)


@pytest.mark.further
def test_the_focus_stays_in_a_note_that_changes(book, page):
    page.locator("#close .more > summary").press("Enter")
    for place in (
        page.locator("#close .more > summary"),
        page.locator("#close .proof > summary"),
        page.locator("#close").get_by_role("link", name="All-reduce"),
    ):
        place.focus()
        say_otherwise(book, page)
        expect(place).to_be_focused()
        book.path("sample/linear.yaml").write_text(ANNOTATIONS)
        page.locator("#close").get_by_text("One switch picks it.").wait_for()


@pytest.mark.further
def test_a_changed_note_is_remembered_once_it_was_read(book, page):
    say_otherwise(book, page)
    with page.expect_request("**/-/read") as told:
        page.locator("#close .more > summary").click()
    assert told.value.post_data_json == ["close"]


@pytest.mark.further
def test_a_changed_note_folds_when_another_is_gone_to(book, page):
    page.locator("#close .title a").click()
    why = page.locator("#close").get_by_text("Half the bytes.")
    expect(why).to_be_visible()
    say_otherwise(book, page)
    expect(why).to_be_visible()
    page.locator("#whole-step .title a").click()
    expect(why).to_be_hidden()


def test_another_note_is_a_new_page(book, page):
    notes = book.path("sample/linear.yaml")
    notes.write_text(ANNOTATIONS.replace("id: close", "id: close-it"))
    page.locator("#close-it").wait_for()
    assert not is_same_document(page)


@pytest.mark.further
def test_a_page_that_went_comes_back_with_its_notes(live, book, browser):
    page = browser.new_page()  # it may say that there is none
    page.goto(live.address)
    page.get_by_text("One switch picks it.").wait_for()
    book.path("sample/linear.yaml").write_text("")
    page.get_by_role("heading", name="There is no such page").wait_for()
    book.path("sample/linear.yaml").write_text(ANNOTATIONS)
    page.get_by_text("One switch picks it.").wait_for()
    page.close()


@pytest.mark.further
def test_another_look_is_a_new_page(book, page):
    style = book.root / "site" / "theme" / "site.css"
    with page.expect_event("load"):
        style.write_text(style.read_text() + "main { outline: 3px solid teal; }")
    main = page.locator("main")
    assert main.evaluate("it => getComputedStyle(it).outlineWidth") == "3px"


@pytest.mark.further
def test_a_page_follows_a_server_that_was_started_again(tmp_path, browser):
    book = make_live_book(tmp_path)
    page = browser.new_page()  # it may say that the server is gone
    with serving(book) as port:
        page.goto(f"http://127.0.0.1:{port}/{FILE}")
        page.get_by_text("One switch picks it.").wait_for()
    book.path("sample/linear.yaml").write_text(
        ANNOTATIONS.replace("One switch picks it.", "One flag does.")
    )
    with serving(book, port):
        page.get_by_text("One flag does.").wait_for()
    page.close()


def test_a_fault_is_told_and_taken_back(book, page):
    notes = book.path("sample/linear.yaml")
    notes.write_text(ANNOTATIONS.replace("kind: citation", "kind: sitation", 1))
    page.get_by_role("alert").get_by_text("got 'sitation'").wait_for()
    expect(page.locator("#close")).to_have_count(1)
    notes.write_text(ANNOTATIONS)
    page.get_by_role("alert").wait_for(state="hidden")
    assert is_same_document(page)


SLIPS = {
    "a note": ("annotations/sample/linear.yaml", b"- {id: [}\n", "linear.yaml:"),
    "bytes": ("annotations/sample/linear.yaml", b"\xe9", "not UTF-8"),
    "a template": ("site/templates/file.html", b"{% if %}", "templates/file.html:"),
    "a diagram": ("site/pages/diagrams/d.mmd", b"flowchart LR\n  y -->\n", "d.mmd:"),
    "a chapter": ("site/pages/chapters/01-a.md", b"# A\n\xe9", "01-a.md:2:1"),
}
CLAIMS = "title: t\nalternative: a\nclaims: []\n"


@pytest.mark.parametrize("name", SLIPS)
def test_a_slip_of_any_kind_is_told_and_work_goes_on(book, page, name):
    path, slip, told = SLIPS[name]
    file = book.root / path
    before = file.read_bytes() if file.exists() else b""
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.suffix == ".mmd":
        file.with_suffix(".yaml").write_text(CLAIMS)
    file.write_bytes(before + slip)
    page.get_by_role("alert").get_by_text(told).wait_for()
    if before:
        file.write_bytes(before)
    else:
        file.unlink()
        file.with_suffix(".yaml").unlink(missing_ok=True)
    page.get_by_role("alert").wait_for(state="hidden")
    changed = ANNOTATIONS.replace("One switch picks it.", "One flag does.")
    book.path("sample/linear.yaml").write_text(changed)
    page.get_by_text("One flag does.").wait_for()


@pytest.mark.further
def test_a_page_opened_while_something_is_wrong_says_so(book, page, open_page):
    book.path("sample/linear.yaml").write_text("- {id: [}")
    page.get_by_role("alert").wait_for()
    other = open_page(page.url)
    other.get_by_role("alert").get_by_text("linear.yaml:").wait_for()
    other.close()


def test_the_readers_first_own_note_is_followed(book, page):
    mine = Path(os.environ["READERKIT_DATA"]) / "book" / "annotations" / "sample"
    mine.mkdir(parents=True)
    own = (
        "- id: mine\n  at: {file: lib/linear.py, symbol: step}\n  kind: note\n"
        "  title: My own\n  text: Mine.\n"
    )
    (mine / "mine.yaml").write_text(own)
    page.get_by_role("alert").get_by_text("missing key 'concepts'").wait_for()
    (mine / "mine.yaml").write_text(own + "  concepts: [collectives]\n")
    page.locator(".note").get_by_text("My own").wait_for()
    expect(page.get_by_role("alert")).to_have_count(0)

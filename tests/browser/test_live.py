"""A served page follows the files that it is made of."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.helpers import ANNOTATIONS, make_book, serving
from tests.readerkit.commands.test_site import FILE

SITE = Path(__file__).parents[2] / "site"


@pytest.fixture
def book(tmp_path):
    book = make_book(tmp_path)
    for folder in ("templates", "theme"):
        shutil.copytree(SITE / folder, book.root / "site" / folder)
    return book


@pytest.fixture
def page(book, free_port, open_page):
    with serving(book, free_port):
        page = open_page(f"http://127.0.0.1:{free_port}/{FILE}", width=1400)
        page.evaluate("window.sameDocument = true")
        yield page
        page.close()  # it would say that the server is gone


def is_same_document(page):
    return page.evaluate("window.sameDocument === true")


def test_the_text_of_a_note_changes_where_it_stands(book, page):
    changed = ANNOTATIONS.replace("Half the bytes.", "Half of *them*.")
    changed = changed.replace("The closing collective", "What closes the block")
    book.path("sample/linear.yaml").write_text(changed)
    page.locator(".code .note").get_by_text("Half of them.").wait_for()
    assert page.locator(".code .note em").get_by_text("them").count() == 1
    assert page.locator(".contents").get_by_text("What closes the block").count() == 1
    assert is_same_document(page)


def test_another_note_is_a_new_page(book, page):
    notes = book.path("sample/linear.yaml")
    notes.write_text(ANNOTATIONS.replace("id: close", "id: close-it"))
    page.locator("#close-it").wait_for()
    assert not is_same_document(page)


def test_another_look_is_a_new_page(book, page):
    style = book.root / "site" / "theme" / "site.css"
    with page.expect_event("load"):
        style.write_text(style.read_text() + "main { outline: 3px solid teal; }")
    main = page.locator("main")
    assert main.evaluate("it => getComputedStyle(it).outlineWidth") == "3px"


def test_a_page_follows_a_server_that_was_started_again(book, free_port, browser):
    page = browser.new_page()  # it may say that the server is gone
    with serving(book, free_port):
        page.goto(f"http://127.0.0.1:{free_port}/{FILE}")
        page.get_by_text("Half the bytes.").wait_for()
    book.path("sample/linear.yaml").write_text(
        ANNOTATIONS.replace("Half the bytes.", "Half of them.")
    )
    with serving(book, free_port):
        page.get_by_text("Half of them.").wait_for()
    page.close()


def test_a_fault_is_told_and_taken_back(book, page):
    notes = book.path("sample/linear.yaml")
    notes.write_text(ANNOTATIONS.replace("kind: citation", "kind: sitation", 1))
    page.get_by_role("alert").get_by_text("got 'sitation'").wait_for()
    assert page.locator("#close").count() == 1
    notes.write_text(ANNOTATIONS)
    page.get_by_role("alert").wait_for(state="hidden")
    assert is_same_document(page)

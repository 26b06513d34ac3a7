"""The sample bank, and a server that asks its questions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Locator

from readerkit.app.quiz_banks import QuizBanks, open_history
from readerkit.quiz.variant import Variant
from tests.helpers import SampleBook, make_book, run_typed, serving, write_files
from tests.readerkit.quiz.sample import BANK, QUESTIONS

USED = "{of: all_reduce, in: [lib/linear.py], count: 1}"


def make_quiz_book(folder: Path, questions: str = QUESTIONS) -> SampleBook:
    """Make the sample book with the sample bank, its keys locked."""
    for before, after in (
        ("concepts: [c]", "concepts: [collectives]"),
        ("upstream: minis, file: m.py, symbol: f", "upstream: sample, SYMBOL"),
        ("upstream: sample, file: a.py, symbol: f", "upstream: sample, SYMBOL"),
        ("SYMBOL", "file: lib/linear.py, symbol: Linear.forward"),
        ('"g(...)"', '"y = all_reduce(...)"'),
        ('"h(...)"', '"y = reduce_scatter(...)"'),
        ('"k(...)"', '"y = x @ self.weight"'),
        ("default: {file: a.py, of: F, is: 1}", f"uses: {USED}"),
    ):
        assert before in questions
        questions = questions.replace(before, after)
    book = make_book(folder)
    quiz = {"quizzes/7/bank.yaml": BANK, "quizzes/7/all.yaml": questions}
    write_files(book.root, quiz)
    arguments = ("quiz", "lint", "7", "--update-lock", "--book", str(book.root))
    made = run_typed(*arguments, stdin="")
    assert (book.root / "quizzes/7/keys.lock").is_file(), made.err
    return book


def typed_key(book: SampleBook) -> Variant:
    """Return the key of the question that the latest quiz asks now."""
    history = open_history()
    row = history.sessions()[-1]
    position = len({answer.position for answer in history.answers(row.id)})
    return QuizBanks(book.root).bank(7).variant(row.questions[position], row.seed)


@dataclass(frozen=True)
class QuizServer:
    """A server for many tests: only the history remembers what was asked."""

    book: SampleBook
    port: int
    data: Path

    @contextmanager
    def afresh(self) -> Iterator[int]:
        """Give the port of a server that has asked nothing yet."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("READERKIT_DATA", str(self.data))
            yield self.port
        for path in self.data.glob("quiz.sqlite3*"):
            path.unlink()


@contextmanager
def serving_quiz(folder: Path) -> Iterator[QuizServer]:
    """Serve the sample bank."""
    data = folder / "data"
    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("READERKIT_CACHE", str(folder / "cache"))
            patch.setenv("READERKIT_DATA", str(data))
            book = make_quiz_book(folder)
            port = stack.enter_context(serving(book))
        yield QuizServer(book, port, data)


def fill_in(form: Locator, variant: Variant, answer: str = "") -> None:
    """Answer in a form of a page, by what it has for the kind; with the key if none."""
    asked, typed = variant.prompt, answer or variant.typed_key
    if asked.kind in ("single", "multiple"):
        for label in typed.split():
            form.locator(f"input[value={label}]").check()
    elif asked.kind == "order":
        _move(form, typed.split())
    elif asked.kind == "match":
        for index, pair in enumerate(typed.split()):
            form.locator("select").nth(index).select_option(pair)
    elif asked.kind == "predict" and asked.length == 1:
        form.locator(f"input[value={typed}]").check()
    elif asked.kind == "sketch" or (asked.kind == "predict" and asked.length):
        fields = form.locator("[name=answer]")
        for index, cell in enumerate(typed.split()):
            field = fields.nth(index)
            is_list = field.evaluate("field => field.tagName === 'SELECT'")
            field.select_option(cell) if is_list else field.fill(cell)
    elif asked.kind == "short":
        form.get_by_label("Your answer").first.fill("Both.")
        form.get_by_role("button", name="Answer").click()
        for point in variant.says:
            form.get_by_label(point).check()
    else:
        form.get_by_label("Your answer").fill(typed)


def _move(form: Locator, wanted: list[str]) -> None:
    """Put items in order by their buttons, with the keyboard."""
    for place, label in enumerate(wanted):
        while True:
            now = form.locator("input[name=answer]").evaluate_all(
                "all => all.map(e => e.value)"
            )
            if now.index(label) == place:
                break
            item = form.locator("li").nth(now.index(label))
            item.locator("[data-move='-1']").press("Enter")

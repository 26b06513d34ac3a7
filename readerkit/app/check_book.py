"""What stands in a book beside its notes, held: mirrors, records, pages, quizzes.

Each part gives all of its faults, whatever is wrong with the others. What holds
formulas, mirrors, pages and quizzes is imported where a book has some: a hook that
checks notes has to be over before anybody waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from readerkit.app.library import Library, note_progress
from readerkit.content.annotations import Annotation, Concept
from readerkit.content.book import Book
from readerkit.content.chapters import ChapterText
from readerkit.content.resolved_notes import Note, Sources, check_mirrors
from readerkit.errors import ContentError, ContentFault, LockError, ReaderkitError
from readerkit.model.language import SPANISH

Check = Callable[[], Iterable[ContentFault] | None]
"""Returns faults, or raises them."""


def faults_of(checks: Iterable[Check]) -> Iterator[ContentFault]:
    """Yield the faults of every check."""
    for check in checks:
        try:
            yield from check() or ()
        except ContentError as error:
            yield from error.faults
        except ReaderkitError as error:
            yield ContentFault("", 0, 0, str(error))


@dataclass(slots=True)
class HeldCounts:
    """How much of each kind was held, and what is wrong with it."""

    counts: dict[str, int] = field(default_factory=dict)
    """By the word for one of them."""
    faults: list[ContentFault] = field(default_factory=list)


def check_beside(
    library: Library, opened: Mapping[str, Sources], notes: Iterable[Note]
) -> HeldCounts:
    """Hold everything in a book that is not a note on an upstream.

    ``opened`` are its upstreams, by name; ``notes`` those that resolve.
    """
    book, found = library.book, HeldCounts()
    found.counts["mirror"] = len(book.mirrors)
    if book.tours:
        found.counts["tour"] = len(book.tours)
    checks: list[Check] = [
        lambda: check_mirrors(book, library.folders()),
        partial(_check_formulas, book, notes),
    ]
    if book.mirrors:
        checks.append(partial(_check_events, library))
    if (library.root / "site" / "pages").is_dir():
        checks.append(partial(_check_pages, library, opened, found))
    if (library.root / "quizzes").is_dir():
        checks.append(partial(_check_quizzes, library, found))
    found.faults += faults_of(checks)
    return found


def _check_formulas(book: Book, notes: Iterable[Note]) -> None:
    """Refuse formulas that cannot be set; what sets them is loaded where one is."""
    written = [note for note in notes if _has_formula(note.annotation, book)]
    concepts = book.concepts.values()
    if written or any(_has_formula(each, book) for each in concepts):
        from readerkit.render.html.notes import check_texts

        check_texts(written, book)


def _has_formula(entry: Annotation | Concept, book: Book) -> bool:
    """Tell whether a text has what begins one."""
    said = (entry.texts, book.translated(entry, SPANISH).texts)
    return any("$" in text for texts in said for text in texts.values())


def _check_events(library: Library) -> Iterable[ContentFault]:
    from readerkit.app.records import read_records
    from readerkit.evidence.executed_lines import unseen_events

    return unseen_events(library.book.mirrors.values(), read_records(library))


def _check_pages(
    library: Library, opened: Mapping[str, Sources], found: HeldCounts
) -> Iterator[ContentFault]:
    from readerkit.app.page_questions import read_banks
    from readerkit.app.read_chapters import read_chapters, read_labs
    from readerkit.app.read_paths import read_routes
    from readerkit.app.read_writing import (
        diagram_files,
        draw_diagram,
        read_diagram_at,
        read_supplies,
    )
    from readerkit.render.html.chapter_check import Named, check_chapter

    root, diagrams = library.root, diagram_files(library.root)
    chapters, labs = [*read_chapters(root)], [*read_labs(root)]
    scripts = [*chapters, *(text for lab in labs for text in lab.texts)]
    found.counts |= {"chapter": len(chapters), "lab": len(labs)}
    found.counts["diagram"] = len(diagrams)
    names = {path.stem for path in diagrams}

    book = library.book
    supplies = read_supplies(library, {}, partial(read_banks, root))
    named = Named(book.annotations, names, book.tours, supplies)

    def check(script: ChapterText) -> Iterator[ContentFault]:
        return check_chapter(script, named)

    def draw(name: int) -> None:
        diagram = read_diagram_at(diagrams[name], root, opened)
        for each in filter(None, (diagram, diagram.spanish)):
            draw_diagram(library, each, "light")

    def count_routes() -> None:
        routes = read_routes(library)
        found.counts["path"] = len(routes.failures) + len(routes.pairs)

    yield from faults_of(partial(check, script) for script in scripts)
    yield from faults_of(partial(draw, number) for number in range(len(diagrams)))
    yield from faults_of([count_routes])


def _check_quizzes(library: Library, found: HeldCounts) -> Iterator[ContentFault]:
    from readerkit.app.check_quiz import lint_phase
    from readerkit.app.quiz_banks import QuizBanks

    banks = QuizBanks.at(library.root)
    for phase in banks.phases():
        note_progress(f"holding quiz {phase}")
        try:
            held = lint_phase(banks, library, phase)
        except LockError as error:
            lock = banks.lock_path(phase).relative_to(banks.root).as_posix()
            yield ContentFault(lock, 1, 1, str(error))
        except ContentError as error:
            yield from error.faults
        else:
            known = found.counts.get("question", 0)
            found.counts["question"] = known + held.questions

"""What proves the sentences of an entry, on a terminal: words, check, lines."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

from readerkit.app.interface_translation import say_in
from readerkit.app.library import Library
from readerkit.app.open_ground import open_ground
from readerkit.claims.check_dispatch import hold
from readerkit.claims.checks_in_words import say_check
from readerkit.claims.ground import Ground
from readerkit.claims.proof import Claimable, Proof, Sentence, lines_of, sentences
from readerkit.claims.proof_marks import with_marks, words_in
from readerkit.claims.unquoted import Unquoted, unquoted
from readerkit.content.annotations import Annotation, Concept
from readerkit.content.mirrors import Mirror
from readerkit.model.anchor import Span
from readerkit.model.language import Say
from readerkit.render.terminal_safe import visible, visible_line
from readerkit.terminal.as_json import print_json
from readerkit.terminal.pager import show_paged
from readerkit.wording.next_command import typed
from readerkit.wording.numbers import counted

MAX_PLACES, MAX_LINES = 3, 6
"""Whose lines are shown, and how many; of other places only where they stand."""
_SIGNS = {"holds": "✓", "false": "✗", "lost": "✗", "open": "·"}


def code_of(
    line: Callable[[int], str], span: Span, most: int, say: Say
) -> Iterator[str]:
    """Yield the first lines of a place as a terminal shows them.

    `line` gives a line of the place's file by its number.
    """
    last = min(span.last, span.first + most - 1)
    rows = "\n".join(line(number) for number in range(span.first, last + 1))
    for row in textwrap.dedent(rows).split("\n"):
        yield f"    | {visible(row)}".rstrip()
    if last < span.last:
        more = counted(span.last - last, say("more line"), say("more lines"))
        yield f"    | ({more})"


def _held(entry: Claimable, ground: Ground) -> Iterator[tuple[Sentence, Proof]]:
    return ((each, hold(each.claim, ground)) for each in sentences(entry))


def plain_proofs(library: Library, entry: Claimable) -> dict[str, Any]:
    """Return the claims of an entry as JSON has them, held now, and what none says."""
    claims = [
        {
            "says": sentence.claim.says,
            "check": sentence.claim.kind,
            "asks": say_check(sentence.claim),
            "state": proof.state,
            "found": proof.found,
            "places": [str(span) for span in proof.places],
            "printed": list(lines_of(sentence, proof)),
            "file": sentence.claim.place.file,
            "line": sentence.claim.place.line,
        }
        for sentence, proof in _held(entry, open_ground(library))
    ]
    left = [{"field": each.field, "words": each.words} for each in _unquoted(entry)]
    return {"claims": claims, "unquoted": left}


def _unquoted(entry: Claimable) -> Iterator[Unquoted]:
    return (each for part in entry.claimed() for each in unquoted(part))


def not_said(entry: Claimable, say: Say) -> Iterator[str]:
    """Yield what no claim says, field by field: in a pipe one line each, with tabs."""
    is_terminal, width = sys.stdout.isatty(), shutil.get_terminal_size().columns
    parts = [*_unquoted(entry)]
    if is_terminal and parts:
        yield from _wrapped(say("No claim says:"), "", width)
    for each in parts:
        words = visible_line(each.words)
        if is_terminal:
            yield from _wrapped(f"- {each.field}: {words}", "    ", width)
        else:
            yield "\t".join(("unquoted", words, each.field))


def proofs(library: Library, entry: Claimable, language: str) -> Iterator[str]:
    """Yield each claim of an entry, held now: in a pipe one line each, with tabs."""
    say = say_in(language)
    is_terminal = sys.stdout.isatty()
    width, ground = shutil.get_terminal_size().columns, open_ground(library)
    for each, proof in _held(entry, ground):
        places = [str(span) for span in proof.places]
        says = visible_line(says_in(library, each, language))
        check = visible_line(say_check(each.claim, say))
        printed: list[str] = []
        if each.claim.experiment is not None:
            places = [typed("prove", each.entry)]
            if proof.output:
                lines = lines_of(each, proof)
                told = say("printed on torch {version}")
                told = told.format(version=proof.output.torch or "-")
                printed = [*map(visible_line, (told, *lines))]
        if proof.state != "holds" and each.claim.undecided is None:
            near = proof.near if is_terminal else ()
            places = [*map(visible_line, (proof.found, *near)), *places[:1]]
        if not is_terminal:
            yield "\t".join((proof.state, says, check, *places, *printed))
            continue
        yield from _wrapped(f"{_SIGNS[proof.state]} {says}", "", width)
        spans = proof.places if proof.state == "holds" else ()
        for row in (check, *places[len(spans) :]):
            yield from _wrapped(row, "    ", width)
        for at, span in enumerate(spans):
            yield from _wrapped(str(span), "    ", width)
            if at < MAX_PLACES:
                yield from code_of(ground.file(span.path).line, span, MAX_LINES, say)
        for row in printed:
            yield from _wrapped(row, "    | ", width)


def says_in(library: Library, sentence: Sentence, language: str) -> str:
    """Return what is proved; translated, the whole sentences that say it.

    Where there are none, the English words are marked.
    """
    claim, entry = sentence.claim, sentence.claimed
    if language == "en":
        return claim.says
    field = entry.field_of(claim)
    other = library.book.texts_in(sentence.entry, entry, language).get(field, "")
    found = words_in(other, entry.texts[field], claim.says) if other else ""
    return found or f"[en] {claim.says}"


def with_proved(library: Library, note: Annotation) -> Annotation:
    """Return a note with a mark behind each proved sentence.

    What lies in the source was proved when it was locked; all else is held now.
    """
    own = library.book.annotations[note.id]
    ground = open_ground(library)
    locked = {key for lock in library.book.locks.values() for key in lock.claims}

    def is_proved(each: Sentence) -> bool:
        beside = each.claim.kind in ("experiment", "run", "value")
        return each.key in locked or (
            beside and hold(each.claim, ground).state == "holds"
        )

    says = [each.claim.says if is_proved(each) else "" for each in sentences(own)]
    english = own.texts
    return note.with_texts(
        {
            name: with_marks(text, english[name], says)
            for name, text in note.texts.items()
            if name != "title"
        }
    )


def show_proofs(
    library: Library, entry: Claimable, language: str, *, as_json: bool, pager: bool
) -> None:
    """Show the claims of an entry under its name, then the words that none says."""
    if as_json:
        print_json({"id": entry.id, **plain_proofs(library, entry)})
        return
    title = entry.title
    if language != "en" and isinstance(entry, Annotation | Concept | Mirror):
        texts = library.book.texts_in(entry.id, entry, language)
        title = texts.get("title", title)
    title = visible_line(f"{entry.id}: {title}")
    rest = not_said(entry, say_in(language))
    page = "\n".join((title, *proofs(library, entry, language), *rest))
    show_paged(f"{page}\n", pager=pager, language=language)


def _wrapped(text: str, indent: str, width: int) -> list[str]:
    more = f"{indent}  "
    return textwrap.wrap(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=more,
        break_on_hyphens=False,
    )

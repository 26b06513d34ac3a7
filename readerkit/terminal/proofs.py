"""What proves the sentences of a note, on a terminal: words, check, lines."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterator

from readerkit.app.check_claims import open_ground
from readerkit.app.interface_words import say_in
from readerkit.app.library import Library
from readerkit.claims.hold import hold
from readerkit.claims.proof import sentences
from readerkit.claims.words import say_check
from readerkit.render.terminal_safe import visible_line
from readerkit.wording.next_command import typed

_SIGNS = {"holds": "✓", "false": "✗", "lost": "✗", "open": "·"}


def proofs(library: Library, note: str, language: str) -> Iterator[str]:
    """Yield each claim of a note, held now: in a pipe one line each, with tabs."""
    ground, say = open_ground(library), say_in(language)
    is_terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns
    for each in sentences(library.book.annotations[note]):
        proof = hold(each.claim, ground)
        places = [str(span) for span in proof.places]
        says, check = (
            visible_line(each.claim.says),
            visible_line(say_check(each.claim, say)),
        )
        if each.claim.experiment is not None:
            places = [typed("prove", note)]
        elif proof.state != "holds" and each.claim.undecided is None:
            places = [visible_line(proof.found)]
        if not is_terminal:
            yield "\t".join((proof.state, says, check, *places))
            continue
        yield from _wrapped(f"{_SIGNS[proof.state]} {says}", "", width)
        for row in (check, *places):
            yield from _wrapped(row, "    ", width)


def _wrapped(text: str, indent: str, width: int) -> list[str]:
    more = f"{indent}  "
    return textwrap.wrap(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=more,
        break_on_hyphens=False,
    )

"""What proves the sentences of an entry, on a terminal: words, check, lines."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

from readerkit.app.check_claims import open_ground
from readerkit.app.interface_words import say_in
from readerkit.app.library import Library
from readerkit.claims.hold import hold
from readerkit.claims.proof import Claimable, Proof, Sentence, sentences
from readerkit.claims.words import say_check
from readerkit.render.terminal_safe import visible_line
from readerkit.terminal.as_json import print_json
from readerkit.terminal.pager import show_paged
from readerkit.wording.next_command import typed

_SIGNS = {"holds": "✓", "false": "✗", "lost": "✗", "open": "·"}


def _held(library: Library, entry: Claimable) -> Iterator[tuple[Sentence, Proof]]:
    ground = open_ground(library)
    return ((each, hold(each.claim, ground)) for each in sentences(entry))


def plain_proofs(library: Library, entry: Claimable) -> list[dict[str, Any]]:
    """Return the claims of an entry as JSON has them, held now."""
    return [
        {
            "says": sentence.claim.says,
            "check": sentence.claim.kind,
            "asks": say_check(sentence.claim),
            "state": proof.state,
            "found": proof.found,
            "places": [str(span) for span in proof.places],
            "file": sentence.claim.place.file,
            "line": sentence.claim.place.line,
        }
        for sentence, proof in _held(library, entry)
    ]


def proofs(library: Library, entry: Claimable, language: str) -> Iterator[str]:
    """Yield each claim of an entry, held now: in a pipe one line each, with tabs."""
    say = say_in(language)
    is_terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns
    for each, proof in _held(library, entry):
        places = [str(span) for span in proof.places]
        says, check = (
            visible_line(each.claim.says),
            visible_line(say_check(each.claim, say)),
        )
        if each.claim.experiment is not None:
            places = [typed("prove", each.entry)]
        elif proof.state != "holds" and each.claim.undecided is None:
            places = [visible_line(proof.found)]
        if not is_terminal:
            yield "\t".join((proof.state, says, check, *places))
            continue
        yield from _wrapped(f"{_SIGNS[proof.state]} {says}", "", width)
        for row in (check, *places):
            yield from _wrapped(row, "    ", width)


def show_proofs(
    library: Library, entry: Claimable, language: str, *, as_json: bool, pager: bool
) -> None:
    """Show the claims of an entry under its name."""
    if as_json:
        print_json({"id": entry.id, "claims": plain_proofs(library, entry)})
        return
    title = visible_line(f"{entry.id}: {entry.title}")
    page = "\n".join((title, *proofs(library, entry, language)))
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

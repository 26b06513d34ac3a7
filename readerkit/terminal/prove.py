"""Experiments on a terminal: the sentence, its lines, and what the program printed."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import click

from readerkit.app.experiments import (
    Laboratory,
    Ran,
    open_laboratory,
    read_experiment,
)
from readerkit.app.library import Library
from readerkit.claims.proof import Sentence
from readerkit.content.book import Note, Sources, resolve_each
from readerkit.errors import ReaderkitError
from readerkit.wording.numbers import counted

MAX_CODE_LINES = 12


def prove(
    library: Library, chosen: Sequence[Sentence], *, as_json: bool, timeout_s: float
) -> list[str]:
    """Run the program behind each sentence and print what it did; return the faults."""
    faults: list[str] = []
    rows: list[dict[str, Any]] = []
    skipped: Counter[str] = Counter()
    entry = ""
    with open_laboratory(library) as laboratory:
        for sentence in chosen:
            ran = _run(library, laboratory, sentence, timeout_s)
            rows.append(_plain(sentence, ran))
            faults += _faults(sentence, ran)
            if ran.skipped:
                skipped[ran.skipped] += 1
            elif not as_json:
                if sentence.entry != entry:
                    click.echo("\n".join(_heading(library, sentence.entry)))
                entry = sentence.entry
                click.echo("\n".join(_said(sentence, ran)))
    if as_json:
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return faults
    for why, count in skipped.items():
        click.echo(f"{count} not run here: {why}")
    proved = len(chosen) - skipped.total() - len(faults)
    click.echo(f"proved: {proved} of {counted(len(chosen), 'sentence')}")
    return faults


def _run(
    library: Library, laboratory: Laboratory, sentence: Sentence, timeout_s: float
) -> Ran:
    try:
        return laboratory.run(read_experiment(library, sentence), timeout_s)
    except ReaderkitError as error:
        return Ran(error=str(error))


def _faults(sentence: Sentence, ran: Ran) -> list[str]:
    """Return what is wrong, as one message at the place of the claim."""
    claim = sentence.claim
    assert claim.experiment is not None
    if ran.skipped:
        return []
    words = f"{sentence.entry}: '{claim.says}'"
    if ran.error:
        return [str(claim.place.fault(f"{words} is not proved: {ran.error}"))]
    wrong = [row for row in ran.beside(claim.experiment.prints) if not row[3]]
    if not wrong:
        return []
    got = ", ".join(
        f"{name} = {json.dumps(printed)}" if name in ran.figures else f"no {name}"
        for name, printed, _, _ in wrong
    )
    expected = ", ".join(f"{name} = {json.dumps(value)}" for name, _, value, _ in wrong)
    return [str(claim.place.fault(f"{words} is not true", got, expected))]


def _plain(sentence: Sentence, ran: Ran) -> dict[str, Any]:
    claim = sentence.claim
    assert claim.experiment is not None
    return {
        "id": sentence.entry,
        "says": claim.says,
        "file": claim.place.file,
        "line": claim.place.line,
        "experiment": claim.experiment.name,
        "seconds": round(ran.seconds, 2),
        "figures": [
            {"name": name, "printed": printed, "expected": value, "ok": same}
            for name, printed, value, same in ran.beside(claim.experiment.prints)
        ],
        "error": ran.error or None,
        "skipped": ran.skipped or None,
    }


def _heading(library: Library, entry: str) -> Iterator[str]:
    """Yield what is proved, and where the lines of a note stand, with some of them."""
    yield entry
    note = library.book.annotations.get(entry)
    if note is None:
        return
    sources = library.sources(library.book.upstreams[note.upstream])
    if not sources.is_absent:
        for each in resolve_each(library.book, sources, [note])[0]:
            yield f"  {each.span}"
            yield from _code(sources, each)


def _code(sources: Sources, note: Note) -> Iterator[str]:
    file, span = sources.file(note.span.path), note.span
    last = min(span.last, span.first + MAX_CODE_LINES - 1)
    rows = "\n".join(file.line(number) for number in range(span.first, last + 1))
    yield from (f"    | {row}" for row in textwrap.dedent(rows).split("\n"))
    if last < span.last:
        yield f"    | ({counted(span.last - last, 'more line')})"


def _said(sentence: Sentence, ran: Ran) -> Iterator[str]:
    """Yield a sentence, and each figure beside what was expected."""
    claim = sentence.claim
    assert claim.experiment is not None
    words = f"'{claim.says}'"
    yield textwrap.fill(words, 78, initial_indent="  ", subsequent_indent="   ")
    time = f", {ran.seconds:.1f} s" if ran.seconds else ""
    yield f"    annotations/experiments/{claim.experiment.name}.py{time}"
    rows = [] if ran.error else ran.beside(claim.experiment.prints)
    for name, printed, value, same in rows:
        shown = json.dumps(printed) if name in ran.figures else "nothing"
        wrong = "" if same else "   WRONG"
        yield f"    {name} = {shown}   expected {json.dumps(value)}{wrong}"
    if ran.error:
        yield f"    {ran.error}"
    yield ""

"""Experiments on a terminal: the sentence, its lines, and what the program printed."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import click

from readerkit.app.check_claims import entries_of
from readerkit.app.experiments import (
    Laboratory,
    Ran,
    open_laboratory,
    read_experiment,
)
from readerkit.app.interface_words import say_in
from readerkit.app.library import Library
from readerkit.claims.experiment import say_figures, unlike
from readerkit.claims.proof import Sentence, sentences
from readerkit.content.book import Note, Sources, resolve_each
from readerkit.content.claims import ExperimentCheck
from readerkit.errors import ReaderkitError
from readerkit.evidence.output import FILE, Output
from readerkit.terminal.proofs import says_in
from readerkit.wording.meant_name import matches
from readerkit.wording.next_command import typed
from readerkit.wording.numbers import counted

MAX_CODE_LINES = 12


def prove(
    library: Library,
    chosen: Sequence[Sentence],
    *,
    as_json: bool,
    timeout_s: float,
    keep: bool,
    language: str,
) -> list[str]:
    """Run the program behind each sentence and print what it did; return the faults.

    With ``keep`` what they print takes the place of what is kept of them.
    """
    faults: list[str] = []
    rows: list[dict[str, Any]] = []
    skipped: Counter[str] = Counter()
    new: dict[str, Output] = {}
    entry = ""
    with open_laboratory(library) as laboratory:
        for sentence in chosen:
            ran = _run(library, laboratory, sentence, timeout_s)
            rows.append(_plain(sentence, ran))
            wrong = [*_faults(sentence, ran)]
            if ran.output:
                name = _experiment(sentence).name
                new[name] = ran.output
                wrong += [] if keep else _unlike_kept(laboratory, sentence, ran)
            faults += wrong[:1]
            if ran.skipped:
                skipped[ran.skipped] += 1
            elif not as_json:
                if sentence.entry != entry:
                    click.echo("\n".join(_heading(library, sentence.entry)))
                entry = sentence.entry
                click.echo("\n".join(_said(library, sentence, ran, language)))
        if keep:
            known = [_experiment(each).name for each in experiments_of(library)]
            laboratory.kept.keep(new, known)
    if as_json:
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return faults
    for why, count in skipped.items():
        click.echo(f"{count} not run here: {why}")
    if keep:
        click.echo(f"kept: {counted(len(new), 'output')}, annotations/{FILE}")
    proved = len(chosen) - skipped.total() - len(faults)
    click.echo(f"proved: {proved} of {counted(len(chosen), 'sentence')}")
    return faults


def experiments_of(library: Library) -> list[Sentence]:
    """Return the sentences of a book that a program proves."""
    every = [each for entry in entries_of(library) for each in sentences(entry)]
    return [each for each in every if each.claim.experiment is not None]


def refuse_without(library: Library, ids: Sequence[str], known: Sequence[str]) -> None:
    """Say of an entry that no program stands behind what proves it instead.

    Raises:
        ReaderkitError: such an entry among ``ids``.
    """
    entries = {each.id: each for each in entries_of(library)}
    wrong = []
    for word in ids:
        meant = matches(word, entries)
        if len(meant) != 1 or meant[0] in known or matches(word, known):
            continue
        kinds = Counter(each.claim.kind for each in sentences(entries[meant[0]]))
        told = ", ".join(f"{kind} ({count})" for kind, count in kinds.items())
        show = typed("annotate", meant[0], "--claims")
        instead = f"and is held by {told}: {show}" if told else "and no claim at all"
        wrong.append(f"{meant[0]} has no experiment, {instead}")
    if wrong:
        raise ReaderkitError("\n".join(wrong))


def _experiment(sentence: Sentence) -> ExperimentCheck:
    check = sentence.claim.experiment
    assert check is not None
    return check


def _run(
    library: Library, laboratory: Laboratory, sentence: Sentence, timeout_s: float
) -> Ran:
    try:
        return laboratory.run(read_experiment(library, sentence), timeout_s)
    except ReaderkitError as error:
        return Ran(error=str(error))


def _faults(sentence: Sentence, ran: Ran) -> Iterator[str]:
    """Yield what is wrong, as one message at the place of the claim."""
    claim, check = sentence.claim, _experiment(sentence)
    if ran.skipped:
        return
    words = f"{sentence.entry}: '{claim.says}'"
    if ran.error:
        yield str(claim.place.fault(f"{words} is not proved: {ran.error}"))
    elif wrong := unlike(ran.figures, check.prints):
        got, expected = (say_figures(f, wrong) for f in (ran.figures, check.prints))
        yield str(claim.place.fault(f"{words} is not true", got, expected))


def _unlike_kept(laboratory: Laboratory, sentence: Sentence, ran: Ran) -> Iterator[str]:
    """Yield where a run of the same code printed other figures than are kept."""
    name = _experiment(sentence).name
    output, changed = laboratory.kept.of(name) or (None, [])
    if output is None or changed:
        return
    was = output.figures()
    if other := unlike(ran.figures, was):
        what = f"annotations/experiments/{name}.py prints other figures than are kept"
        got, expected = (say_figures(f, other) for f in (ran.figures, was))
        mend = typed("prove", sentence.entry, "--keep")
        fault = sentence.claim.place.fault(f"{sentence.entry}: {what}", got, expected)
        yield f"{fault}: {mend}"


def _plain(sentence: Sentence, ran: Ran) -> dict[str, Any]:
    claim, check = sentence.claim, _experiment(sentence)
    wrong = unlike(ran.figures, check.prints)
    return {
        "id": sentence.entry,
        "says": claim.says,
        "file": claim.place.file,
        "line": claim.place.line,
        "experiment": check.name,
        "seconds": round(ran.seconds, 2),
        "figures": [
            {
                "name": name,
                "printed": ran.figures.get(name),
                "expected": value,
                "ok": name not in wrong,
            }
            for name, value in check.prints.items()
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


def _said(
    library: Library, sentence: Sentence, ran: Ran, language: str
) -> Iterator[str]:
    """Yield a sentence, and each figure beside what was expected."""
    check, say = _experiment(sentence), say_in(language)
    words = f"'{says_in(library, sentence, language)}'"
    yield textwrap.fill(words, 78, initial_indent="  ", subsequent_indent="   ")
    time = f", {ran.seconds:.1f} s" if ran.seconds else ""
    yield f"    annotations/experiments/{check.name}.py{time}"
    wrong = unlike(ran.figures, check.prints)
    for name, value in {} if ran.error else check.prints.items():
        shown = json.dumps(ran.figures[name]) if name in ran.figures else say("nothing")
        mark = f"   {say('WRONG')}" if name in wrong else ""
        yield f"    {name} = {shown}   {say('expected')} {json.dumps(value)}{mark}"
    if ran.error:
        yield f"    {ran.error}"
    yield ""

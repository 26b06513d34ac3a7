"""Experiments on a terminal: the sentence, its lines, and what the program printed."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import click

from readerkit.app.check_claims import entries_of
from readerkit.app.experiments import Laboratory, Ran, open_laboratory, read_experiment
from readerkit.app.interface_translation import say_in
from readerkit.app.library import Library
from readerkit.claims.experiment import say_figures, unlike
from readerkit.claims.proof import Sentence, sentences
from readerkit.content.claims import ExperimentCheck
from readerkit.content.resolved_notes import resolve_each
from readerkit.errors import ReaderkitError, WrongUseError
from readerkit.evidence.experiment_output import FILE
from readerkit.model.language import said as in_language
from readerkit.system.output import printing
from readerkit.terminal.as_json import print_json
from readerkit.terminal.pager import show_paged
from readerkit.terminal.proof_report import code_of, says_in
from readerkit.wording.meant_name import matches
from readerkit.wording.next_command import typed
from readerkit.wording.numbers import counted

MAX_CODE_LINES = 12
MAX_NAMED = 3


def list_experiments(
    library: Library, known: Sequence[Sentence], language: str, *, as_json: bool
) -> None:
    """Print which sentences a program proves, each with its entry."""
    if as_json:
        print_json([{"id": each.entry, "says": each.claim.says} for each in known])
        return
    if not sys.stdout.isatty():
        for each in known:
            click.echo(f"{each.entry}\t{says_in(library, each, language)}")
        return
    rows: list[str] = []
    for entry, of_it in groupby(known, key=lambda each: each.entry):
        said = (says_in(library, each, language) for each in of_it)
        rows += [entry, *(f"  {says}" for says in said)]
    show_paged("\n".join(rows), language=language)


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
    runs: list[tuple[Sentence, Ran]] = []
    faults: list[str] = []
    heads: tuple[str, ...] = ()
    with open_laboratory(library) as laboratory:
        for sentence in _by_program(chosen):
            ran = _run(library, laboratory, sentence, timeout_s)
            runs.append((sentence, ran))
            if not (as_json or ran.skipped):
                now = (sentence.entry, _experiment(sentence).name, ran.error)
                head = (
                    []
                    if now == heads
                    else _head(library, sentence, ran, heads, language)
                )
                heads = now
                said = _said(library, sentence, ran, language)
                with printing():
                    click.echo("\n".join((*head, *said)))
        failed = [each for each in runs if _is_wrong(*each)]
        faults += _faults(library, failed, language)
        new = {_experiment(s).name: ran.output for s, ran in runs if ran.output}
        if keep:
            known = [_experiment(each).name for each in experiments_of(library)]
            laboratory.kept.keep(new, known)
        else:
            rest = [each for each in runs if each not in failed]
            faults += _unlike_kept(laboratory, rest, language)
    with printing():
        if as_json:
            rows = [_plain(*each) for each in runs]
            click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        else:
            _say_in_all(runs, failed, language, kept=len(new) if keep else None)
    return faults


def _say_in_all(
    runs: Sequence[tuple[Sentence, Ran]],
    failed: Sequence[tuple[Sentence, Ran]],
    language: str,
    kept: int | None,
) -> None:
    say = say_in(language)
    skipped = Counter(ran.skipped for _, ran in runs if ran.skipped)
    for why, count in skipped.items():
        told = say("{count} not run here: {why}")
        click.echo(told.format(count=count, why=say(why)))
    if kept is not None:
        outputs = counted(kept, say("output"), say("outputs"))
        click.echo(f"{say('kept')}: {outputs}, annotations/{FILE}")
    proved = len(runs) - skipped.total() - len(failed)
    sentences = counted(len(runs), say("sentence"), say("sentences"))
    told = say("proved: {count} of {sentences}")
    click.echo(told.format(count=proved, sentences=sentences))


def _by_program(chosen: Sequence[Sentence]) -> list[Sentence]:
    """Return sentences by entry, and of each entry by program, in their order."""
    first: dict[tuple[str, ...], int] = {}
    for each in chosen:
        for key in ((each.entry,), (each.entry, _experiment(each).name)):
            first.setdefault(key, len(first))
    return sorted(
        chosen,
        key=lambda s: (first[s.entry,], first[s.entry, _experiment(s).name]),
    )


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
        raise WrongUseError("\n".join(wrong))


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
        return Ran(error=error.args[0])


def _is_wrong(sentence: Sentence, ran: Ran) -> bool:
    wrong = unlike(ran.figures, _experiment(sentence).prints)
    return bool(ran.error or wrong) and not ran.skipped


def _faults(
    library: Library, failed: Sequence[tuple[Sentence, Ran]], language: str
) -> Iterator[str]:
    """Yield what is wrong: a program's error once, a wrong figure at each claim."""
    say = say_in(language)
    behind: dict[str, list[str]] = {}
    for sentence, ran in failed:
        claim, check = sentence.claim, _experiment(sentence)
        words = f"{sentence.entry}: '{says_in(library, sentence, language)}'"
        place = f"{claim.place.file}:{claim.place.line}"
        if ran.error:
            behind.setdefault(ran.error, []).append(f"{words} ({place})")
            continue
        wrong = unlike(ran.figures, check.prints)
        got, expected = (say_figures(f, wrong) for f in (ran.figures, check.prints))
        told = say("{words} is not true: got {got}, expected {expected}")
        told = told.format(words=words, got=got, expected=expected)
        yield f"{place}:{claim.place.column}: {told}"
    for error, sentences_behind in behind.items():
        more = len(sentences_behind) - MAX_NAMED
        named = "; ".join(sentences_behind[:MAX_NAMED])
        rest = say(" and {count} more").format(count=more) if more > 0 else ""
        yield f"{in_language(error, say)}: {say('not proved')}: {named}{rest}"


def _unlike_kept(
    laboratory: Laboratory, runs: Sequence[tuple[Sentence, Ran]], language: str
) -> Iterator[str]:
    """Yield where a run of the same code printed other figures than are kept."""
    told = say_in(language)(
        "{file} prints other figures than are kept: got {got}, "
        "expected {expected}: {command}"
    )
    for name, (sentence, ran) in {_experiment(s).name: (s, r) for s, r in runs}.items():
        output, changed = laboratory.kept.of(name) or (None, [])
        if output is None or changed or ran.output is None:
            continue
        was = output.figures()
        if other := unlike(ran.figures, was):
            file = f"annotations/experiments/{name}.py"
            got, expected = (say_figures(f, other) for f in (ran.figures, was))
            mend = typed("prove", sentence.entry, "--keep")
            yield told.format(file=file, got=got, expected=expected, command=mend)


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


def _head(
    library: Library,
    sentence: Sentence,
    ran: Ran,
    before: tuple[str, ...],
    language: str,
) -> Iterator[str]:
    """Yield what is proved, where it was not said before, and by which program."""
    if before[:1] != (sentence.entry,):
        yield from _heading(library, sentence.entry, language)
    time = f", {ran.seconds:.1f} s" if ran.seconds else ""
    yield f"  annotations/experiments/{_experiment(sentence).name}.py{time}"
    if ran.error:
        yield f"    {in_language(ran.error, say_in(language))}"


def _heading(library: Library, entry: str, language: str) -> Iterator[str]:
    """Yield an entry, and where the lines of a note stand, with some of them."""
    yield entry
    note = library.book.annotations.get(entry)
    if note is None:
        return
    sources = library.sources(library.book.upstreams[note.upstream])
    if not sources.is_absent:
        for each in resolve_each(library.book, sources, [note])[0]:
            yield f"  {each.span}"
            file = sources.file(each.span.path)
            yield from code_of(file.line, each.span, MAX_CODE_LINES, say_in(language))


def _said(
    library: Library, sentence: Sentence, ran: Ran, language: str
) -> Iterator[str]:
    """Yield a sentence, and each figure beside what was expected."""
    check, say = _experiment(sentence), say_in(language)
    words = f"'{says_in(library, sentence, language)}'"
    width = min(78, shutil.get_terminal_size().columns)
    yield textwrap.fill(words, width, initial_indent="  ", subsequent_indent="   ")
    wrong = unlike(ran.figures, check.prints)
    for name, value in {} if ran.error else check.prints.items():
        shown = json.dumps(ran.figures[name]) if name in ran.figures else say("nothing")
        told = say("as expected")
        if name in wrong:
            told = f"{say('expected')} {json.dumps(value)}   {say('WRONG')}"
        yield f"    {name} = {shown}   {told}"
    yield ""

"""The keys of a bank: every place resolved, every fact observed, as of now."""

from __future__ import annotations

import signal
import subprocess
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING

from msgspec import Struct, json
from msgspec.structs import replace as replace_fields

from readerkit.anchors import fingerprint
from readerkit.app.folders import PACKAGE, read_at_most
from readerkit.errors import ContentError, ContentFault, ReaderkitError
from readerkit.evidence.record import Record
from readerkit.model.freshness import MadeFrom, changes, digest, tell
from readerkit.model.git_names import NO_BLOB
from readerkit.model.language import SPANISH
from readerkit.quiz.kinds.locate import Locate
from readerkit.quiz.kinds.numeric import AskedNumber
from readerkit.quiz.kinds.predict import AskedWords, Predict
from readerkit.quiz.lockfile import (
    Fact,
    LockedFact,
    QuizLock,
    ResolvedPlace,
    SpanishNote,
    Work,
)
from readerkit.quiz.observed_keys import answer_record, chosen_events
from readerkit.system.children import end_with_parent, python
from readerkit.system.status import Status
from readerkit.wording.next_command import typed

if TYPE_CHECKING:
    from pathlib import Path

    from readerkit.app.library import Library
    from readerkit.content.resolved_notes import Sources
    from readerkit.model.anchor import Anchor
    from readerkit.model.statement import Statement
    from readerkit.quiz.bank import Bank
    from readerkit.quiz.kinds import Question
    from readerkit.quiz.observed_keys import ObservationQuery


def resolve_keys(
    bank: Bank, library: Library, locked: QuizLock, *, run: bool = False
) -> tuple[QuizLock, list[ContentFault]]:
    """Return a bank's lock as of now, and a fault for each key that fails.

    What a faulty mini shows takes seconds to see: it is run only with ``run``, and only
    where a part of what it was made from is not what it was for ``locked``.
    """
    keys, faults, status = _Keys(bank, library, locked, run=run), [], Status()
    for done, question in enumerate(bank.questions.values()):
        status.show("quiz: the keys of question", done, len(bank.questions))
        try:
            keys.add(question)
        except ReaderkitError as error:
            faults.append(question.fault(str(error)))
    status.clear()
    return keys.lock, faults


def placed_now(bank: Bank, library: Library) -> QuizLock:
    """Return a bank's lock with the lines of today where the code lives on.

    Raises:
        ContentError: each question whose code is nowhere.
    """
    lock, faults = bank.lock, []
    keys = _Keys(bank, library, lock, run=False)
    for question in bank.questions.values():
        notes = (f"note:{note}" for note in question.all_notes())
        slots = (f"{question.id}/{slot}" for slot in question.places())
        if lock.living.keys().isdisjoint((*notes, *slots)):
            continue
        try:
            keys.place(question)
        except ReaderkitError as error:
            faults.append(question.fault(str(error)))
    if faults:
        raise ContentError(faults)
    now = keys.lock
    return replace_fields(
        lock,
        places={**lock.places, **now.places},
        statements={**lock.statements, **now.statements},
    )


class _Keys:
    """What the questions of a bank resolve to, one after the other."""

    def __init__(
        self, bank: Bank, library: Library, locked: QuizLock, *, run: bool
    ) -> None:
        self._bank, self._library = bank, library
        self._locked, self._run = locked, run
        self._sources: dict[str, Sources] = {}
        self._places: dict[str, ResolvedPlace] = {}
        self._facts: dict[str, LockedFact] = {}
        self._works = _works(bank, library)
        self._shown: dict[str, tuple[Statement, ...]] = {}
        self._spanish: dict[str, SpanishNote] = {}
        self._living: dict[str, str] = {}

    @property
    def lock(self) -> QuizLock:
        """All of it."""
        return QuizLock(
            self._places,
            self._facts,
            self._works,
            self._shown,
            self._spanish,
            self._living,
        )

    def add(self, question: Question) -> None:
        """Resolve whatever a question names.

        Raises:
            ReaderkitError: a key that fails.
        """
        self.place(question)
        bank = replace(self._bank, lock=QuizLock(self._places, {}, self._works))
        root = self._library.root
        if fact := _fact(question, bank, root, self._locked, run=self._run):
            self._facts[question.id] = fact

    def place(self, question: Question) -> None:
        """Resolve the lines that a question names.

        Raises:
            ReaderkitError: a key that fails.
        """
        book = self._library.book
        for note in question.all_notes():
            written, key = book.annotations.get(note), f"note:{note}"
            if written is None or key in self._places:
                continue  # an unknown one is told with all other dead links
            told = (note, written.title)
            place = self._place(key, written.upstream, written.anchor, *told)
            self._places[key] = place
            texts = book.translated(written, SPANISH).texts
            if "title" in texts:
                self._spanish[note] = SpanishNote(texts["title"])
        for slot, ref in question.places().items():
            key = f"{question.id}/{slot}"
            self._places[key] = self._place(key, ref.upstream, ref)
        if isinstance(question, Locate):
            self._shown[question.id] = self._statements(question.id)

    def _place(
        self, key: str, upstream: str, anchor: Anchor, note: str = "", title: str = ""
    ) -> ResolvedPlace:
        if upstream not in self._sources:
            library = self._library
            self._sources[upstream] = library.sources(library.upstream(upstream))
        if self._sources[upstream].is_absent and key in self._locked.places:
            return self._locked.places[key]
        sources = self._sources[upstream]
        span = sources.resolve(anchor)
        if sources.upstream.is_living:
            self._living[key] = fingerprint(span, sources.file(span.path)).code
        lock = self._library.book.locks.get(upstream)
        blob = lock.files.get(span.path, NO_BLOB) if lock else NO_BLOB
        return ResolvedPlace(
            upstream, span.path, span.first, span.last, blob, note, title
        )

    def _statements(self, question: str) -> tuple[Statement, ...]:
        """Return what the lines do that an answer may name."""
        from readerkit.anchors.statements import statements

        within = self._places[f"{question}/within"]
        read = self._sources.get(within.upstream)
        if read is None or read.is_absent:
            return self._locked.statements.get(question, ())
        return tuple(statements(read.file(within.path), within.first, within.last))


def _works(bank: Bank, library: Library) -> dict[str, Work]:
    cited = {cited.key for each in bank.questions.values() for cited in each.references}
    return {
        key: Work(work.title, work.authors, work.year, work.url)
        for key, work in library.book.references.items()
        if key in cited
    }


def _fact(
    question: Question, bank: Bank, root: Path, locked: QuizLock, *, run: bool
) -> LockedFact | None:
    """Return the locked fact behind a prediction; None for other questions."""
    if not isinstance(question, Predict):
        return None
    query = question.source
    if query.fault:
        return _symptom(question.id, query, locked, run=run)
    if query.record:
        names = [name := f"annotations/records/{query.record}.json"]
        data = read_at_most(root / name, root)
        record = Record.parse(data.decode("utf-8", "replace"), name)
        value: Fact = answer_record(query, record)
        sites = () if query.give == "held" else _sites(query, record)
        parts = {name: digest(read_at_most(root / name, root)) for name in names}
        return LockedFact(value, parts, record.command, sites)
    else:  # computed for each variant; the lock keeps the first one, to be diffed
        first = bank.variant(question.id, 0)
        assert isinstance(first, AskedNumber | AskedWords)
        value = first.key
        root = PACKAGE.parent
        names = ["mini_impls/schedules.py", "mini_impls/timeline.py"]
    parts = {name: digest(read_at_most(root / name, root)) for name in names}
    return LockedFact(value, parts)


def _sites(query: ObservationQuery, record: Record) -> tuple[ResolvedPlace | None, ...]:
    """Return the lines that the calls of a record came from."""
    found = list[ResolvedPlace | None]()
    for site in (event.site for event in chosen_events(query, record)):
        if site is None:
            found.append(None)
            continue
        blob = record.blobs.get(site.upstream, {}).get(site.path, NO_BLOB)
        where = (site.upstream, site.path, site.line, site.line)
        found.append(ResolvedPlace(*where, blob))
    return tuple(found)


def _symptom(
    question: str, query: ObservationQuery, locked: QuizLock, *, run: bool
) -> LockedFact:
    """Return a faulty mini's symptom: from the lock while all its parts are the same.

    Raises:
        ReaderkitError: a part is another than when it was run, and ``run`` is off.
    """
    today = _fault_parts().get(f"{query.mini}/{query.fault}")
    if today is None:
        raise ReaderkitError(f"{query.mini} has no fault '{query.fault}'")
    known = locked.facts.get(question)
    changed = changes(known.made_from, today) if known else []
    if known and not changed:
        return known
    if not run:
        why = tell(changed) or "its key is not in the lock"
        raise ReaderkitError(
            f"{why}: run the fault '{query.fault}' anew with "
            f"{typed('quiz', 'lint', '--update-lock')} (it needs torch)"
        )
    return LockedFact(_run_fault(query), today)


class _FaultRow(Struct, frozen=True):
    mini: str
    fault: str
    made_from: MadeFrom


class _FaultRun(Struct, frozen=True):
    symptoms: list[str]


@cache
def _fault_parts() -> dict[str, MadeFrom]:
    """Return the parts that each fault's run depends on, as the faults list them."""
    rows = json.decode(_ask_faults("--json"), type=list[_FaultRow])
    return {f"{row.mini}/{row.fault}": row.made_from for row in rows}


def _run_fault(query: ObservationQuery) -> tuple[str, ...]:
    """Run a mini with and without a fault; return the one symptom that it showed."""
    mini, fault = str(query.mini), str(query.fault)
    with Status().waiting(f"running {mini} with the fault {fault}"):
        shown = json.decode(_ask_faults(mini, fault, "--json"), type=_FaultRun)
    symptoms = tuple(each.replace(" ", "-") for each in shown.symptoms)
    if len(symptoms) != 1:
        raise ReaderkitError(
            f"{typed('break', mini, fault)}: got the symptoms "
            f"{', '.join(symptoms) or 'none'}, expected one of its answers"
        )
    return symptoms


def _ask_faults(*words: str) -> bytes:
    """Return the output of ``readerkit break``, from a process of its own."""
    done = subprocess.run(
        python("-m", "mini_impls.faults", *words),
        capture_output=True,
        check=False,
        preexec_fn=partial(end_with_parent, signal.SIGTERM),
    )
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip()
        raise ReaderkitError(f"{typed('break', *words)}: {said}")
    return done.stdout

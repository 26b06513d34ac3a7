"""A bank of questions held: every key resolved and computed anew, no link dead."""

from __future__ import annotations

import signal
import subprocess
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING

from msgspec import Struct, json

from readerkit.app.folders import PACKAGE, read_at_most
from readerkit.app.library import warn
from readerkit.app.own_figures import own_names
from readerkit.content.translations import (
    TranslatedBank,
    TranslatedQuestion,
    english_stamp,
)
from readerkit.errors import ContentError, ContentFault, LockError, ReaderkitError
from readerkit.evidence.record import Record
from readerkit.model.freshness import MadeFrom, changes, digest, tell
from readerkit.model.git_names import NO_BLOB
from readerkit.model.language import SPANISH
from readerkit.quiz.kinds.locate import Locate
from readerkit.quiz.kinds.numeric import AskedNumber
from readerkit.quiz.kinds.predict import AskedWords, Predict
from readerkit.quiz.lock import (
    Fact,
    LockedFact,
    QuizLock,
    ResolvedPlace,
    SpanishNote,
    Work,
    differences,
)
from readerkit.quiz.observed_keys import answer_record, chosen_events
from readerkit.system.children import end_with_parent, python
from readerkit.system.status import Status
from readerkit.wording.next_command import typed
from readerkit.wording.numbers import counted

if TYPE_CHECKING:
    from pathlib import Path

    from readerkit.app.library import Library
    from readerkit.app.quiz_banks import QuizBanks
    from readerkit.content.resolved_notes import Sources
    from readerkit.model.anchor import Anchor
    from readerkit.model.statement import Statement
    from readerkit.quiz.bank import Bank
    from readerkit.quiz.kinds import Question
    from readerkit.quiz.lint import Known
    from readerkit.quiz.observed_keys import ObservationQuery


class BankSummary(Struct, frozen=True):
    """How much a bank holds in which every key holds."""

    phase: int
    questions: int
    objectives: int
    types: dict[str, int]
    places: int
    facts: int
    spanish: int
    """Of the questions, how many are translated."""


def lint_phase(
    banks: QuizBanks, library: Library, phase: int, *, update: bool = False
) -> BankSummary:
    """Return the counts of a bank in which every key holds.

    Raises:
        ContentError: every fault of the bank.
        LockError: keys that are not what the lock says.
    """
    from readerkit.quiz.lint import lint_bank
    from readerkit.upstreams.store import write_atomically

    bank = banks.bank(phase, with_lock=False)
    locked = _readable_lock(banks, phase)
    now, faults = resolve_keys(bank, library, locked, run=update)
    if faults:
        raise ContentError(faults)
    if update:
        write_atomically(banks.lock_path(phase), now.to_text().encode())
    bank = replace(bank, lock=now)
    _check_titles(bank, banks.titles(phase))
    spanish = _translated(bank, banks.translations(phase))
    faults = lint_bank(bank, known_names(library))
    if faults:
        raise ContentError(faults)
    if not update and (changed := differences(locked, now)):
        rows = "\n".join(f"  {line}" for line in changed)
        keys = counted(len(changed), "key is", "keys are")
        raise LockError(
            f"phase {phase}: {keys} not what the lock says:\n{rows}\n"
            "Look at each, then run: "
            + typed("quiz", "lint", str(phase), "--update-lock")
        )
    return BankSummary(
        phase,
        len(bank.questions),
        len(bank.objectives),
        Counter(question.type for question in bank.questions.values()),
        len(now.places),
        len(now.facts),
        spanish,
    )


def relock_places(banks: QuizBanks, library: Library, phase: int) -> bool:
    """Write where the lines of a bank stand now; nothing where a key fails.

    Nothing is run: what a run has shown is as it was.
    """
    from readerkit.upstreams.store import write_atomically

    bank, locked = banks.bank(phase, with_lock=False), _readable_lock(banks, phase)
    now, faults = resolve_keys(bank, library, locked)
    if faults:
        return False
    path, text = banks.lock_path(phase), now.to_text().encode()
    if path.is_file() and path.read_bytes() != text:
        write_atomically(path, text)
        return True
    return False


def _check_titles(bank: Bank, told: TranslatedBank) -> None:
    """Warn of a title in Spanish that is of another English.

    Raises:
        ContentError: a title of no objective, a name of no topic.
    """
    where = bank.file.replace(".yaml", f".{SPANISH}.yaml")
    faults = [
        ContentFault(
            where, 1, 1, f"no {what}", f"'{name}'", f"one of {', '.join(known)}"
        )
        for what, names, known in (
            ("objective", told.objectives, bank.objectives),
            ("topic", told.topics, bank.topics()),
        )
        for name in sorted(set(names) - set(known))
    ]
    if faults:
        raise ContentError(faults)
    written = {"bank": (bank.rules, told.bank)} | {
        name: (bank.objectives[name], title) for name, title in told.objectives.items()
    }
    for name, (english, spanish) in written.items():
        stamp = english_stamp(english, ["title"])
        if spanish.title and spanish.of != stamp:
            warn(
                f"{where}: {name} is of another English: translate it anew, of: {stamp}"
            )


def _translated(bank: Bank, told: Mapping[str, TranslatedQuestion]) -> int:
    """Return how many questions have their Spanish; warn of that of other English.

    Raises:
        ContentError: a translation of no question, or with other texts or formulas.
    """
    where, faults = bank.file.replace("bank.yaml", "*.es.yaml"), []
    for name in sorted(told.keys() - bank.questions.keys()):
        faults.append(ContentFault(where, 1, 1, f"no question '{name}'"))
    fresh = 0
    for name in told.keys() & bank.questions.keys():
        question, spanish = bank.questions[name], told[name]
        if not spanish.of or spanish.is_outdated(question.stamp):
            warn(
                f"{where}: {name} is of another English, and asked in English: "
                f"translate it anew, of: {question.stamp}"
            )
            continue
        english = TranslatedQuestion(
            prompt=question.prompt,
            explanation=question.explanation,
            rest=question.rest,
        )
        faults += [question.fault(f"in Spanish: {e}") for e in spanish.faults(english)]
        fresh += 1
    if faults:
        raise ContentError(faults)
    return fresh


def _readable_lock(banks: QuizBanks, phase: int) -> QuizLock:
    """Return the lock of a phase; an empty one where it has to be made anew."""
    try:
        return banks.lock(phase)
    except ContentError:
        return QuizLock()


def known_names(library: Library) -> Known:
    """Return the names of a book that questions may link to."""
    from readerkit.quiz.lint import Known

    book = library.book
    return Known(
        frozenset(book.annotations),
        frozenset(book.concepts),
        {key: frozenset(work.sections) for key, work in book.references.items()},
        own_names(),
    )


def resolve_keys(
    bank: Bank, library: Library, locked: QuizLock, *, run: bool = False
) -> tuple[QuizLock, list[ContentFault]]:
    """Return a bank's lock as of now, and a fault for each key that fails.

    What a faulty mini shows takes seconds to see: it is run only with ``run``, and only
    where a part of what it was made from is not what it was for ``locked``.
    """
    from readerkit.anchors.statements import statements

    sources: dict[str, Sources] = {}
    places: dict[str, ResolvedPlace] = {}
    facts: dict[str, LockedFact] = {}
    shown: dict[str, tuple[Statement, ...]] = {}
    works = _works(bank, library)
    spanish: dict[str, SpanishNote] = {}
    faults = []

    def place(
        key: str, upstream: str, anchor: Anchor, note: str = "", title: str = ""
    ) -> ResolvedPlace:
        if upstream not in sources:
            sources[upstream] = library.sources(library.upstream(upstream))
        if sources[upstream].is_absent and key in locked.places:
            return locked.places[key]
        span = sources[upstream].resolve(anchor)
        lock = library.book.locks.get(upstream)
        blob = lock.files.get(span.path, NO_BLOB) if lock else NO_BLOB
        return ResolvedPlace(
            upstream, span.path, span.first, span.last, blob, note, title
        )

    status = Status()
    for done, question in enumerate(bank.questions.values()):
        status.show("quiz: the keys of question", done, len(bank.questions))
        try:
            for note in question.all_notes():
                written, key = library.book.annotations.get(note), f"note:{note}"
                if written is None or key in places:
                    continue  # an unknown one is told with all other dead links
                places[key] = place(
                    key, written.upstream, written.anchor, note, written.title
                )
                told = library.book.translated(written, SPANISH).texts
                if "title" in told:
                    spanish[note] = SpanishNote(told["title"])
            for slot, ref in question.places().items():
                key = f"{question.id}/{slot}"
                places[key] = place(key, ref.upstream, ref)
            resolved = replace(bank, lock=QuizLock(places, {}, works))
            fact = _fact(question, resolved, library.root, locked, run=run)
            if fact:
                facts[question.id] = fact
            if isinstance(question, Locate):
                within = places[f"{question.id}/within"]
                read = sources.get(within.upstream)
                if read is None or read.is_absent:
                    shown[question.id] = locked.statements.get(question.id, ())
                else:
                    around = (within.first, within.last)
                    found = statements(read.file(within.path), *around)
                    shown[question.id] = tuple(found)
        except ReaderkitError as error:
            faults.append(question.fault(str(error)))
    status.clear()
    return QuizLock(places, facts, works, shown, spanish), faults


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

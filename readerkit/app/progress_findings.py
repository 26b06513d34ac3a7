"""What the definition of done is held against, seen now: labs, ledger, quiz."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from readerkit.app.check_lab import check_lab
from readerkit.app.folders import open_ledger
from readerkit.app.library import Library
from readerkit.app.quiz_banks import QuizBanks, open_history
from readerkit.budget.ledger_export import as_json_lines, as_markdown
from readerkit.errors import ReaderkitError
from readerkit.labs import PHASE
from readerkit.labs.lab import LABS, ChecklistItem
from readerkit.labs.progress import OBJECTIVES, Findings, Mastery, Spend
from readerkit.quiz.bank import Bank
from readerkit.quiz.history_rows import timestamp
from readerkit.quiz.report import outcomes
from readerkit.wording.next_command import typed

SPEND_RECORDS = ("35-cloud-budget.md", "35-cloud-budget/spend.jsonl")


def find_progress(folder: Path, library: Library, diagram: ChecklistItem) -> Findings:
    """Return everything that the definition of done is held against, seen now."""
    labs: dict[str, list[ChecklistItem]] = {}
    for name, lab in LABS.items():
        try:
            labs[name] = check_lab(lab, folder, library)
        except ReaderkitError as error:  # one that cannot be read is one not met
            first = str(error).splitlines()[0]
            labs[name] = [ChecklistItem.of("a hand-in that can be read", False, first)]
    rented = {
        name: str(path)
        for name, lab in LABS.items()
        if lab.has_task
        for path in [folder / lab.handed_in.replace(".json", "-nccl.json")]
        if path.is_file()
    }
    bank = QuizBanks(library.root).bank(PHASE)
    if lacking := [o for o in OBJECTIVES.values() if o not in bank.objectives]:
        raise ReaderkitError(
            f"quizzes/{PHASE}/bank.yaml: got no objective {', '.join(lacking)}, "
            "expected every one that the definition of done names"
        )
    exam, mastery = find_answers(bank)
    return Findings(
        labs,
        rented,
        _spend(folder),
        diagram,
        exam,
        mastery,
        bank.rules.pass_mark,
    )


def find_answers(bank: Bank) -> tuple[ChecklistItem, dict[str, Mastery]]:
    """Return the best exam of a bank, and what is known of each objective."""
    history = open_history(to_read=True)
    try:
        return _exam(bank, history), _mastery(bank, history)
    finally:
        history.close()


def _exam(bank: Any, history: Any) -> ChecklistItem:
    """Return the best exam that was finished, of those that the bank chose alone."""
    phase = bank.rules.phase
    what = f"quiz {phase} at {bank.rules.pass_mark:.0%} or more"
    answers = history.answers()
    best: tuple[float, str] | None = None
    practice = ""
    for session in history.sessions():
        if session.phase != phase or session.mode != "exam" or not session.ended:
            continue
        if not history.is_official(session):
            practice = "; practice exams do not count"
        else:
            found = outcomes(a for a in answers if a.session == session.id)
            points = sum(each.points for each in found) / len(session.questions)
            best = max(best or (0.0, ""), (points, session.ended[:10]))
    if best is None:
        how = typed("quiz", str(phase), "--exam")
        return ChecklistItem.of(what, False, f"no exam yet{practice}: {how}")
    points, day = best
    met = points >= bank.rules.pass_mark - 1e-9
    return ChecklistItem.of(what, met, f"best exam: {points:.0%}, {day}")


def _mastery(bank: Any, history: Any) -> dict[str, Mastery]:
    told = history.told_answers(timestamp(datetime.now(UTC)))
    latest = {each.question: each for each in outcomes(told)}
    found = {}
    for name, objective in bank.objectives.items():
        asked = [q for q in bank.questions.values() if q.objective == name]
        answered = [latest[q.id] for q in asked if q.id in latest]
        topics = Counter(question.topic for question in asked).most_common(1)
        found[name] = Mastery(
            objective.title,
            topics[0][0] if topics else "",
            len(asked),
            len(answered),
            sum(each.points for each in answered),
        )
    return found


def _spend(folder: Path) -> Spend | None:
    ledger = open_ledger()
    if not ledger.path.exists():
        return None
    entries, ceilings = ledger.entries(), ledger.ceilings()
    total = sum(entry.counted_cents for entry in entries)
    labs: Counter[str] = Counter()
    for entry in entries:
        if entry.lab:
            labs[entry.lab] += entry.counted_cents
    texts = (as_markdown(entries, ceilings, total), as_json_lines(entries))
    recorded = [
        str(folder / name)
        for name in SPEND_RECORDS
        if (folder / name).is_file() and (folder / name).read_text() in texts
    ]
    return Spend(
        total,
        ceilings.phase_cents,
        labs,
        ceilings.lab_cents,
        recorded[0] if recorded else "",
    )

"""The definition of done of phase 35: every line met or not, with its evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from readerkit.budget import Ceilings, show_usd
from readerkit.labs import PHASE
from readerkit.labs.lab import ChecklistItem
from readerkit.wording.next_command import typed

OBJECTIVES = {
    "rung-01": "rung-01-memory",
    "rung-02": "rung-02-ddp",
    "rung-03": "rung-03-tp",
    "rung-04": "rung-04-pp",
    "rung-05": "rung-05-zero",
    "rung-06": "rung-06-fsdp",
    "rung-07": "rung-07-3d",
    "rung-08": "rung-08-precision",
    "rung-09": "rung-09-checkpointing",
    "rung-10": "rung-10-network",
    "goal-1": "goal-tp-sketch",
    "goal-2": "goal-bubble",
    "goal-3": "goal-strategy",
    "goal-4": "goal-source",
    "goal-5": "goal-spend",
}
"""What the quiz asks for, by line of the table."""
NAMES = (
    *("ddp", "tp-curve", "citations", "spend", "diagram", "quiz"),
    *OBJECTIVES,
    "rung-11",
)
"""Of every line."""
DONE = "definition of done"
GROUPS = {
    DONE: "what is handed in",
    "rungs": "the steps of the ladder, one idea each; the quiz asks about them",
    "goals": "what a reader can do at the end",
}
"""The groups of lines, each with what it is."""


@dataclass(frozen=True, slots=True)
class Mastery:
    """What the reader's latest answers to an objective's questions come to."""

    title: str
    topic: str
    """Where most of its questions are."""
    asked: int
    """Questions of the bank."""
    answered: int
    points: float


@dataclass(frozen=True, slots=True)
class Spend:
    """What the ledger says."""

    phase_cents: int
    phase_ceiling_cents: int
    lab_cents: Mapping[str, int]
    lab_ceiling_cents: int
    recorded: str
    """File of the spend record; empty where there is none that says the same sum."""

    @property
    def phase_goal_cents(self) -> int:
        """What the phase may cost: a raised ceiling does not raise the goal."""
        return min(self.phase_ceiling_cents, Ceilings().phase_cents)

    @property
    def lab_goal_cents(self) -> int:
        """What a lab may cost, likewise."""
        return min(self.lab_ceiling_cents, Ceilings().lab_cents)


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything that was looked at, just now."""

    labs: Mapping[str, Sequence[ChecklistItem]]
    """Checks of labs 00 to 04."""
    rented: Mapping[str, str]
    """Labs with a result from GPUs that holds, and its file."""
    spend: Spend | None
    """None where there is no ledger."""
    diagram: ChecklistItem
    exam: ChecklistItem
    mastery: Mapping[str, Mastery]
    pass_mark: float


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the table, under the name that ``--waive`` takes."""

    name: str
    group: str
    item: ChecklistItem


def get_quiz_lines(
    exam: ChecklistItem,
    mastery: Mapping[str, Mastery],
    pass_mark: float,
    phase: int,
    waived: Mapping[str, str],
) -> list[Line]:
    """Return the lines of a phase that has a quiz alone: its exam, its objectives."""
    lines = [Line("quiz", DONE, exam)]
    for name, each in mastery.items():
        lines.append(Line(name, "goals", _objective(each, pass_mark, phase)))
    return [_waive(line, waived) for line in lines]


def get_lines(found: Findings, waived: Mapping[str, str]) -> list[Line]:
    """Return every line; what is not met and was waived says so, with the reason."""
    lines = [
        Line("ddp", DONE, _lab(found, "01", "DDP experiment with timings")),
        Line("tp-curve", DONE, _rented(found, "02", "TP curve within its cap")),
        Line("citations", DONE, _lab(found, "03", "five citations on each of two")),
        Line("spend", DONE, _spend(found, "cloud spend within its ceiling")),
        Line("diagram", DONE, found.diagram),
        Line("quiz", DONE, found.exam),
    ]
    for name, objective in OBJECTIVES.items():
        group = "rungs" if name.startswith("rung") else "goals"
        asked = _objective(found.mastery[objective], found.pass_mark, PHASE)
        lines.append(Line(name, group, asked))
        if name == "rung-10":
            what = "Run FSDP on several GPUs and see how it scales"
            lines.append(Line("rung-11", group, _rented(found, "04", what)))
    with_more: dict[str, Callable[[], ChecklistItem]] = {
        "goal-4": lambda: _lab(found, "03", ""),
        "goal-5": lambda: _spend(found, ""),
    }
    joined = [
        replace(line, item=_both(line.item, with_more[line.name]()))
        if line.name in with_more
        else line
        for line in lines
    ]
    return [_waive(line, waived) for line in joined]


def _lab(found: Findings, lab: str, what: str) -> ChecklistItem:
    items = found.labs[lab]
    missing = [item for item in items if item.state == "not met"]
    if missing:
        evidence = f"lab {lab}: {missing[0].what}: {missing[0].evidence}"
    else:
        evidence = f"lab {lab}: all {len(items)} hold; {items[0].what}"
    return ChecklistItem.of(what, not missing, evidence)


def _rented(found: Findings, lab: str, what: str) -> ChecklistItem:
    checked = _lab(found, lab, what)
    if checked.state == "not met":
        return checked
    if lab not in found.rented:
        return ChecklistItem.of(
            what,
            False,
            f"lab {lab} ran on this machine alone; for GPUs "
            f"{typed('lab', lab, '--task')}, or waive it",
        )
    if found.spend is None:
        return ChecklistItem.of(what, False, "no ledger says what the GPUs cost")
    cents, ceiling = found.spend.lab_cents.get(lab, 0), found.spend.lab_goal_cents
    paid = f"{show_usd(cents)} of {show_usd(ceiling)} through the guard"
    return ChecklistItem.of(
        what,
        0 < cents <= ceiling,
        f"{found.rented[lab]}; {paid}",
    )


def _spend(found: Findings, what: str) -> ChecklistItem:
    spend = found.spend
    if spend is None:
        how = typed("budget", "ledger", "--create") + ", even to spend nothing"
        return ChecklistItem.of(what, False, f"no ledger: {how}")
    sums = f"{show_usd(spend.phase_cents)} of {show_usd(spend.phase_goal_cents)}"
    if not spend.recorded:
        how = typed("budget", "ledger", "--export", "experiments/35-cloud-budget.md")
        return ChecklistItem.of(what, False, f"{sums}, not recorded: {how}")
    met = spend.phase_cents <= spend.phase_goal_cents
    return ChecklistItem.of(what, met, f"{sums}, {spend.recorded}")


def _objective(mastery: Mastery, pass_mark: float, phase: int) -> ChecklistItem:
    needed = min(mastery.asked, 2)
    share = mastery.points / mastery.answered if mastery.answered else 0.0
    met = mastery.answered >= needed and share >= pass_mark - 1e-9
    evidence = (
        f"{share:.0%} over {mastery.answered} of {mastery.asked} questions"
        if mastery.answered
        else "not asked yet"
    )
    if not met:
        evidence += f": {typed('quiz', str(phase), '--topic', mastery.topic)}"
    return ChecklistItem.of(mastery.title, met, evidence)


def _both(first: ChecklistItem, second: ChecklistItem) -> ChecklistItem:
    met = first.state == second.state == "met"
    return ChecklistItem.of(first.what, met, f"{first.evidence}; {second.evidence}")


def _waive(line: Line, waived: Mapping[str, str]) -> Line:
    if line.item.state == "met" or line.name not in waived:
        return line
    item = ChecklistItem(line.item.what, "waived", waived[line.name])
    return replace(line, item=item)

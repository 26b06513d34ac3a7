"""What records show of some lines: whether they ran, and what they sent.

Pure: records and lines come in, an answer goes out; pages and the terminal show it.
That something did not run is said with what was watched: set-up and the first steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from readerkit.content.mirrors import Mirror, MirroredEvent, MirrorSection
from readerkit.errors import ContentFault
from readerkit.evidence.line_ranges import line_numbers, lines_to_text
from readerkit.evidence.record import Event, RankEvents, Record
from readerkit.model.anchor import Span
from readerkit.model.freshness import Change, changes, tell
from readerkit.model.git_names import NO_BLOB, NO_COMMIT, BlobId, CommitId, TreePath
from readerkit.model.language import Say, english
from readerkit.wording.numbers import format_bytes

MINIS = "minis"
_NAMES = {
    "all_reduce": "all-reduce",
    "all_gather": "all-gather",
    "reduce_scatter": "reduce-scatter",
    "all_to_all": "all-to-all",
    "recv": "receive",
}


@dataclass(frozen=True, slots=True, order=True)
class Sent:
    """All calls of one operation that some lines led to, on one rank."""

    op: str
    calls: int
    payload_bytes: int


@dataclass(frozen=True, slots=True)
class LitLines:
    """What one record shows of some lines of one file."""

    comparison: str
    world_size: int
    setup_lines: frozenset[int]
    """Those that ran while model and optimizer were built, on any rank."""
    steps: tuple[frozenset[int], ...]
    """Those that ran in each step that was watched."""
    traced_step: int
    """The one whose events are known."""
    sent: tuple[tuple[Sent, ...], ...]
    """By rank: what was issued while one of the lines was on the stack."""
    stale: tuple[Change, ...]
    """What of the code that the record is of is another at hand."""

    @property
    def step_lines(self) -> frozenset[int]:
        """Those that ran in the traced step."""
        return self.steps[self.traced_step]

    @property
    def ran(self) -> bool:
        """Whether any of the lines ran in the traced step."""
        return bool(self.step_lines)

    @property
    def ran_elsewhere(self) -> bool:
        """Whether any ran in set-up or in another step, and none in the traced one."""
        return not self.ran and bool(self.setup_lines or any(self.steps))

    @property
    def first_rank(self) -> tuple[Sent, ...]:
        """What the first rank issued; nothing where the record has no events."""
        return self.sent[0] if self.sent else ()

    def to_plain(self) -> dict[str, object]:
        """Return it as JSON takes it, lines in order."""
        return {
            "comparison": self.comparison,
            "world_size": self.world_size,
            "traced_step": self.traced_step,
            "step_lines": sorted(self.step_lines),
            "setup_lines": sorted(self.setup_lines),
            "lines_by_step": [sorted(lines) for lines in self.steps],
            "sent": [[asdict(each) for each in rank] for rank in self.sent],
            "stale": [each._asdict() for each in self.stale],
        }


def lit(
    records: Iterable[Record],
    upstream: str,
    span: Span,
    *,
    commit: CommitId | None = None,
    blob: BlobId | None = None,
) -> list[LitLines]:
    """Return the evidence of every record that watched these lines.

    ``commit`` and ``blob`` are those of today: the pin of the upstream, which a folder
    such as the minis does not have (empty), and the id of the file. Without them no
    record counts as stale: the caller has sorted those out.
    """
    return [
        _lit(record, upstream, span, commit, blob)
        for record in records
        if _watched(record, upstream, span.path)
    ]


def _watched(record: Record, upstream: str, path: TreePath) -> bool:
    if upstream == MINIS:  # a mini is watched where it is the one compared
        own = f"mini_impls/{record.mini}.py"
        return path == own or path in record.blobs.get(MINIS, {})
    return upstream in record.pins


def _lit(
    record: Record,
    upstream: str,
    span: Span,
    commit: CommitId | None,
    blob: BlobId | None,
) -> LitLines:
    setup: frozenset[int] = frozenset()
    steps: list[set[int]] = [set() for _ in range(record.watched_steps)]
    inside = range(span.first, span.last + 1)
    for row in record.lit:
        if (row.upstream, row.path) == (upstream, span.path):
            setup = line_numbers(row.setup).intersection(inside)
            for those, lines in row.steps.items():
                for step in line_numbers(those):
                    steps[step].update(line_numbers(lines).intersection(inside))
    known = record.blobs.get(upstream, {}).get(span.path, NO_BLOB)
    was = {upstream: record.pins.get(upstream, NO_COMMIT), span.path: known}
    now = {upstream: commit or NO_COMMIT, span.path: blob if known and blob else known}
    return LitLines(
        record.comparison,
        record.world_size,
        setup,
        tuple(map(frozenset, steps)),
        record.traced_step,
        tuple(sent_through(rank, upstream, span) for rank in record.events),
        stale=tuple(() if commit is None else changes(was, now)),
    )


def sent_through(rank: RankEvents, upstream: str, span: Span) -> tuple[Sent, ...]:
    """Return the calls a rank issued while one of some lines was on the stack."""
    through = {
        number
        for number, stack in enumerate(rank.stacks)
        for site in stack
        if (site.upstream, site.path) == (upstream, span.path)
        and span.first <= site.line <= span.last
    }
    events = rank.mini if upstream == MINIS else rank.upstream
    return _totals(event for event in events if event.stack in through)


def _totals(events: Iterable[Event]) -> tuple[Sent, ...]:
    calls: Counter[str] = Counter()
    payload: Counter[str] = Counter()
    for event in events:
        calls[event.op] += 1
        payload[event.op] += event.payload_bytes
    return tuple(Sent(op, calls[op], payload[op]) for op in calls)


# --- sections of mirrors ---


@dataclass(frozen=True, slots=True)
class LitSection:
    """What one record shows of the events of a mirror's section."""

    comparison: str
    world_size: int
    mini: tuple[tuple[Sent, ...], ...]
    """By rank."""
    upstream: tuple[tuple[Sent, ...], ...]


def lit_section(records: Iterable[Record], section: MirrorSection) -> list[LitSection]:
    """Return the traffic of both sides in the events of a section."""
    found = []
    for record in records:
        named = [e for e in section.events if record.comparison in e.comparisons]
        if named:
            sides = [
                tuple(_totals(_fitting(events, named)) for events in side)
                for side in (
                    [rank.mini for rank in record.events],
                    [rank.upstream for rank in record.events],
                )
            ]
            found.append(LitSection(record.comparison, record.world_size, *sides))
    return found


def _fitting(
    events: Sequence[Event], named: Sequence[MirroredEvent]
) -> Iterable[Event]:
    return (event for event in events if any(belongs(event, name) for name in named))


def belongs(event: Event, named: MirroredEvent) -> bool:
    """Tell whether a mirror's section means such an event."""
    return (event.phase, event.op) == (named.phase, named.op) and (
        named.group in ("", event.group)
    )


def unseen_events(
    mirrors: Iterable[Mirror], records: Iterable[Record]
) -> list[ContentFault]:
    """Return a fault for every event of a mirror that its record does not show."""
    seen: dict[str, list[Event]] = {}
    for record in records:
        seen[record.comparison] = [
            event
            for rank in record.events
            for side in (rank.mini, rank.upstream)
            for event in side
        ]
    faults = []
    for mirror in mirrors:
        for section in mirror.sections:
            for name, named in section.named_events():
                events = seen.get(name)
                if events is None:
                    problem = "a comparison without a record"
                elif not any(belongs(event, named) for event in events):
                    problem = "an event that its record does not show"
                else:
                    continue
                got = " ".join(filter(None, (name, named.phase, named.op, named.group)))
                faults.append(section.place.fault(problem, got))
    return faults


# --- in words ---


def say_lit(found: Sequence[LitLines], say: Say = english) -> list[str]:
    """Return the evidence about lines in words; empty where no record watched them."""
    ran = say("ran in {record} ({ranks} ranks): {sent}")
    rows = [
        ran.format(
            record=each.comparison,
            ranks=each.world_size,
            sent=say_sent(each.sent, say),
        )
        for each in found
        if each.ran and not each.stale
    ]
    fresh = [each for each in found if not each.stale]
    elsewhere = [each for each in fresh if each.ran_elsewhere]
    idle = [] if rows or elsewhere else fresh
    names: dict[str, list[str]] = {}
    for each in elsewhere or idle:
        names.setdefault(say_when(each, say), []).append(each.comparison)
    rows += [f"{when}: {', '.join(those)}" for when, those in names.items()]
    old: dict[str, list[str]] = {}
    for each in found:
        if each.stale:
            old.setdefault(tell(each.stale, say), []).append(each.comparison)
    stale = say("the record is of other code, run it again")
    return [*rows, *(f"{stale}: {', '.join(old[why])} ({why})" for why in old)]


def say_when(seen: LitLines, say: Say = english) -> str:
    """Return when lines ran that the traced step did not run, and what was watched."""
    ran = [step for step, lines in enumerate(seen.steps) if lines]
    if ran and seen.setup_lines:
        told = say("ran in set-up and {steps} only ({watched})")
    elif ran:
        told = say("ran in {steps} only ({watched})")
    elif seen.setup_lines:
        told = say("ran in set-up only ({watched})")
    else:
        told = say("not run ({watched}, imports aside)")
    every = _say_steps(range(len(seen.steps)), say)
    watched = say("watched: set-up and {steps}").format(steps=every)
    return told.format(steps=_say_steps(ran, say), watched=watched)


def _say_steps(steps: Iterable[int], say: Say) -> str:
    """Return steps by their numbers: ``step 0``, ``steps 0 to 2, 4``."""
    runs = lines_to_text(steps).split(",")
    several = say("{first} to {last}")
    numbers = ", ".join(
        several.format(first=first, last=last) if last else first
        for first, _, last in (run.partition("-") for run in runs)
    )
    one = say("step {numbers}") if numbers.isdecimal() else say("steps {numbers}")
    return one.format(numbers=numbers)


def say_section(found: Sequence[LitSection], say: Say = english) -> list[str]:
    """Return the traffic of a section's events in words, for each comparison."""
    row = say("in {record} ({ranks} ranks): {sent}")
    rows = []
    for each in found:
        mini, upstream = (say_sent(side, say) for side in (each.mini, each.upstream))
        sent = say("mini {mini}; upstream {upstream}")
        if mini == upstream:
            sent = say("both {sent}")
        sent = sent.format(mini=mini, upstream=upstream, sent=mini)
        where = {"record": each.comparison, "ranks": each.world_size}
        rows.append(row.format(**where, sent=sent))
    return rows


def say_sent(sent: Sequence[Sequence[Sent]], say: Say = english) -> str:
    """Return the traffic of ranks in words: ``4 all-gathers, 1.2 MB a rank``."""
    texts = [_say_rank(rank) for rank in sent]
    if len(set(texts)) <= 1:
        text = texts[0] if texts else ""
        return say("{sent} a rank").format(sent=text) if text else say("sent nothing")
    return "; ".join(
        f"rank {rank} {text or say('nothing')}" for rank, text in enumerate(texts)
    )


def _say_rank(sent: Sequence[Sent]) -> str:
    if not sent:
        return ""
    calls = ", ".join(say_calls(each.op, each.calls) for each in sent)
    return f"{calls}, {format_bytes(sum(each.payload_bytes for each in sent))}"


def say_calls(op: str, calls: int) -> str:
    """Return so many calls by their name: ``4 all-gathers``."""
    name = op_name(op)
    return f"{calls} {name}" if calls == 1 else f"{calls} {name}s"


def op_name(op: str) -> str:
    """Return the name of an operation: ``all-gather``."""
    return _NAMES.get(op, op)

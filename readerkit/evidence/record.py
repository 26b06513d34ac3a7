"""The record of one comparison: what a mini and its upstream did on the same work.

Pure data: no torch, no mini, no disk. ``mini_impls.compare`` makes records; the book
reads them, joins their events to anchors and mirrors, and asks whether they are fresh.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from readerkit.content.vocabulary import Category, Phase, SideName, WholeDifference
from readerkit.evidence.clock import StepClock
from readerkit.evidence.line_ranges import MAX_LINES, count_lines, line_numbers
from readerkit.model import stored
from readerkit.model.git_names import (
    BlobId,
    CommitId,
    TreePath,
    parse_module,
    parse_path,
)
from readerkit.model.stored import HEX_ID, Real, Stored
from readerkit.wording.next_command import typed

FORMAT = 6

PROGRAM = "comparison"
"""How the files of ``Record.program`` are called among what a record is made from."""

Outcome = Literal["agree", "explained", "differ"]
"""``explained``: they differ, and the reason is known."""
MatchState = Literal["matched", "explained", "flagged"]
Number = int | float


class InFile(Stored, frozen=True):
    """Something of a file of an upstream."""

    upstream: str
    """Name in ``upstreams.yaml``: ``megatron``, ``pytorch``, ``minis``."""
    path: TreePath

    def __post_init__(self) -> None:
        """Refuse a path that leaves its upstream."""
        parse_path(self.path)


class ExecutedLine(InFile, frozen=True):
    """A line that ran."""

    line: int
    function: str


class Event(Stored, frozen=True):
    """One collective or point-to-point call of one rank in one step."""

    phase: Phase
    op: str
    group: str
    """What the group is for: ``dp``, ``tp``, ``pp``, ``embd``."""
    dtype: str
    payload_bytes: int
    """Bytes of the whole tensor: what an all-gather returns, a reduce-scatter takes."""
    issue: int
    """Place among all issues and waits of the step."""
    wait: int | None
    """The same for its wait; None where Python never waits: C++ does."""
    site: ExecutedLine | None
    """None where the call comes from C++."""
    stack: int
    """Which of the rank's ``stacks`` led to it."""
    wait_site: ExecutedLine | None
    peer: int | None
    """Rank in the group: the other end, or the root."""
    reduction: str | None
    products_before: int
    """Matrix products of the step that had run when this was issued."""
    products_hidden: int | None
    """Matrix products that ran between issue and wait."""
    gradients_ready: int | None
    """Gradients that backward had computed at issue; None where nobody counted."""
    gradients_at_wait: int | None
    """The same at its wait; None where nobody saw it either."""


class EventMatch(Stored, frozen=True):
    """One event of the mini beside one of upstream; one of them may be missing."""

    mini: int | None
    upstream: int | None
    state: MatchState
    what: str = ""
    """The kind of difference, as mirrors name it; empty where there is none."""
    apart: str = ""
    """How they differ; empty where they are equal."""
    why: str = ""
    """The reason, where it is known."""
    mirror: str = ""
    """The mirror that gives this reason."""


class RankEvents(Stored, frozen=True):
    """The step of one rank, both sides aligned."""

    rank: int
    mini: tuple[Event, ...]
    upstream: tuple[Event, ...]
    matches: tuple[EventMatch, ...]
    gradients: int | None
    """How many gradients a backward computes."""
    stacks: tuple[tuple[ExecutedLine, ...], ...]
    """Lines of upstream or mini that stood on the stack, the innermost first."""


class Verdict(Stored, frozen=True):
    """One line that says agree or differ, and by how much."""

    what: str
    rank: int | None
    """None where it is about all of them."""
    mini: Real
    upstream: Real
    difference: Real
    tolerance: Real
    state: Outcome
    reason: str
    """Why this tolerance, or why they differ."""
    mirror: str = ""
    """The mirror that says why they differ."""
    allowed: WholeDifference | Literal[""] = ""
    """What a mirror lets differ as a whole; empty where events explain the line."""
    note: str = ""
    """Of ``values``: the annotation that tells why upstream's are wrong here."""


def distance_line(what: str) -> str:
    """Return how the line is called that holds both sides' values side by side."""
    return f"largest of {what}; largest difference"


PARAMETERS = tuple(f"parameters at the {when}" for when in ("start", "end"))
PARAMETER_LINES = frozenset(map(distance_line, PARAMETERS))


class Limit(Stored, frozen=True):
    """Something that the verdict of a comparison does not say."""

    kind: Literal["unseen", "uncovered", "counted"]
    """Nobody saw it; its work lacks it; its bounds were counted, not derived."""
    what: str
    why: str


class Total(Stored, frozen=True):
    """All calls of one operation in the step of one rank."""

    rank: int
    side: SideName
    op: str
    calls: int
    payload_bytes: int
    formula_bytes: int | None
    """What the closed formula says the payload is; None where there is none."""
    formula: str
    algorithm_bytes: float
    """What this rank sends by the textbook: rings, and a tree for a broadcast."""


class Wire(Stored, frozen=True):
    """What the process of one rank wrote to its sockets in one step."""

    rank: int
    side: SideName
    bytes: int
    """Measured by the kernel, with the backend's own headers."""
    expected_bytes: float
    """What this backend's algorithms send for the payloads of the step."""
    formula: str


class Held(Stored, frozen=True):
    """Bytes that one rank keeps between steps."""

    rank: int
    side: SideName
    category: Category
    bytes: int
    formula_bytes: int | None
    formula: str


class Peak(Stored, frozen=True):
    """Live tensor bytes of one rank at the worst moment of a step."""

    rank: int
    side: SideName
    phase: Phase
    """When it was."""
    bytes: int
    categories: Mapping[str, int]


class Times(Stored, frozen=True):
    """Seconds of each measured step of one rank."""

    rank: int
    mini: tuple[float, ...]
    upstream: tuple[float, ...]


class Lit(InFile, frozen=True):
    """Lines of a file that ran, as ``3-7,9``; what an import runs is not among them."""

    setup: str
    """While model and optimizer were built."""
    steps: Mapping[str, str]
    """By the watched steps in which they ran, written likewise: ``0``, ``1-4``."""

    def in_step(self, step: int) -> frozenset[int]:
        """Return the lines that ran in one step."""
        return frozenset(
            line
            for steps, lines in self.steps.items()
            if step in line_numbers(steps)
            for line in line_numbers(lines)
        )


class TimelineBar(Stored, frozen=True):
    """One forward or backward of one microbatch: a bar of a Gantt chart.

    Of a backward in two halves, B makes the input's gradient and W the weights'.
    """

    rank: int
    side: SideName
    kind: Literal["F", "B", "W"]
    microbatch: int
    stage: int
    start_s: float
    end_s: float


class PipelineRecord(Stored, frozen=True):
    """What only pipelines have."""

    schedule: str
    stages: int
    microbatches: int
    chunks: int
    bubble: Mapping[SideName, float]
    """Idle over busy time on unit costs, from the order in which each side ran."""
    formula_bubble: float
    formula: str
    bars: tuple[TimelineBar, ...]
    illustrative: bool
    """More ranks than cores: the chart shows the order, not the time."""


class Shim(Stored, frozen=True):
    """What upstream was told so that it runs here, and why."""

    name: str
    reason: str


class Record(Stored, frozen=True):
    """Everything that one comparison saw."""

    comparison: str
    mini: str
    upstream: str
    """What the mini was held against: ``torch``, ``megatron``, ``fully_shard``."""
    made: str
    """Date and time, UTC."""
    command: str
    world_size: int
    backend: str
    steps: int
    warm_up_steps: int
    traced_step: int
    watched_steps: int
    """So many, from the first on, had their lines noted; times are of later ones."""
    pins: Mapping[str, Annotated[CommitId, HEX_ID]]
    """Upstream to full commit id."""
    blobs: Mapping[str, Mapping[TreePath, Annotated[BlobId, HEX_ID]]]
    """Upstream to path to git blob id, of every file that ran; ``minis`` is one."""
    program: Mapping[TreePath, Annotated[BlobId, HEX_ID]]
    """The same of what built both sides, had them take steps and watched them."""
    versions: Mapping[str, str]
    environment: Mapping[str, str]
    work: Mapping[str, Number | str]
    """Model sizes, batch, learning rate, seeds."""
    sizes: Mapping[str, int]
    """What the counts of known differences depend on: ``world``, ``layers``, ..."""
    shims: tuple[Shim, ...]
    losses: Mapping[SideName, tuple[tuple[Real, ...], ...]]
    """By rank, then by step; a rank that computes no loss has none."""
    verdicts: tuple[Verdict, ...]
    limits: tuple[Limit, ...]
    events: tuple[RankEvents, ...]
    totals: tuple[Total, ...]
    wire: tuple[Wire, ...]
    """Empty where the kernel does not tell."""
    held: tuple[Held, ...]
    peaks: tuple[Peak, ...]
    times: tuple[Times, ...]
    lit: tuple[Lit, ...]
    pipeline: PipelineRecord | None
    clocks: tuple[StepClock, ...] = ()
    """One step of each side on all ranks, by the clock; an older record has none."""
    format: int = FORMAT

    @property
    def made_from(self) -> dict[str, str]:
        """The code that it speaks of: what else it is made from, it holds."""
        return parts_of(self.pins, {**self.blobs, PROGRAM: self.program})

    @property
    def agrees(self) -> bool:
        """Whether all is equal or explained: no line differs, no event is flagged."""
        matches = (match for rank in self.events for match in rank.matches)
        return all(verdict.state != "differ" for verdict in self.verdicts) and all(
            match.state != "flagged" for match in matches
        )

    @classmethod
    def parse(cls, text: str, file: str) -> Record:
        """Return the record that ``to_text`` wrote.

        Raises:
            ContentError: text that is not such a record.
        """
        expected = f"what {typed('compare', 'MINI', '--save')} writes: run it again"
        return stored.parse(
            text, cls, file, what="record", expected=expected, version=FORMAT
        )

    def __post_init__(self) -> None:
        """Refuse names that are none, steps that nobody watched, lines of no code."""
        for field in ("comparison", "mini", "upstream"):  # files are called by them
            try:
                parse_module(getattr(self, field))
            except ValueError as error:
                raise ValueError(f"record.{field}: {error}") from None
        named = [steps for row in self.lit for steps in row.steps]
        steps = {self.traced_step, *(n for text in named for n in line_numbers(text))}
        if not all(0 <= step < self.watched_steps for step in steps):
            raise ValueError(f"lit: steps beyond the {self.watched_steps} watched")
        lines = (text for row in self.lit for text in (row.setup, *row.steps.values()))
        if sum(map(count_lines, lines)) > MAX_LINES:
            raise ValueError(f"lit: more than {MAX_LINES:,} lines")
        events = {each.rank: each for each in self.events}
        for clock in self.clocks:
            of_side: tuple[Event, ...] = getattr(events.get(clock.rank), clock.side, ())
            if len(clock.issues) != len(of_side):
                raise ValueError(f"clocks: {len(of_side)} events of rank {clock.rank}")
        for path in (
            p for files in (*self.blobs.values(), self.program) for p in files
        ):
            parse_path(path)

    def to_text(self) -> str:
        """Return JSON: an event, a total, a file on a line each, made to be diffed."""
        return stored.write(self)


def parts_of(
    pins: Mapping[str, CommitId], blobs: Mapping[str, Mapping[TreePath, BlobId]]
) -> dict[str, str]:
    """Return pins and files of upstreams as what a record is made from, or today's."""
    parts: dict[str, str] = dict(pins)
    for name, files in blobs.items():
        parts |= {f"{name}: {path}": blob for path, blob in files.items()}
    return parts

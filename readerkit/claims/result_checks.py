"""Holds a claim against what a record saw, what a formula is worth, or a program."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from readerkit.anchors.code_search import Found
from readerkit.anchors.settings import find_default, is_of_field
from readerkit.claims.code_checks import default_is, default_value, verdict_on
from readerkit.claims.experiment import program_fault, say_figures, unlike
from readerkit.claims.ground import Ground
from readerkit.claims.literals import NoLiteral
from readerkit.claims.printed import numbers_in
from readerkit.claims.proof import Proof, ProofState
from readerkit.content.claims import DefaultPlace, ExperimentCheck, RunCheck, ValueCheck
from readerkit.errors import AnchorError
from readerkit.estimate.functions import FUNCTIONS
from readerkit.evidence.executed_lines import lit, say_calls
from readerkit.evidence.record import Record
from readerkit.model.anchor import Anchor, Span
from readerkit.model.expression import evaluate
from readerkit.model.formula_text import number_text
from readerkit.model.freshness import Change, outdated, tell
from readerkit.upstreams.store import blob_id
from readerkit.wording.next_command import typed


def hold_run(check: RunCheck, ground: Ground) -> Proof:
    """Hold what a shipped record shows of lines, or of calls."""
    record = ground.record(check.record)
    if record is None:
        expected = "expected a name of annotations/comparisons.yaml that has a record"
        raise AnchorError(f"unknown record: got '{check.record}', {expected}")
    now = {name: each.commit for name, each in ground.upstreams.items()}
    _refuse_other_code(record, outdated(record.pins, {**record.pins, **now}))
    span = _span(check.anchor, ground)
    if check.calls is not None:
        return _hold_calls(check, check.calls, record, span, ground)
    assert span is not None  # RunCheck.problems
    seen = _seen(record, span, ground)
    _refuse_other_code(record, seen.stale)
    ran = seen.ran or seen.ran_elsewhere
    when = "ran" if ran else "did not run"
    return Proof(
        "holds" if ran == check.ran else "false",
        f"{span} {when} in {check.record}",
        ground.home_of(span.path),
        (span,),
    )


def _refuse_other_code(record: Record, changed: Sequence[Change]) -> None:
    """Refuse a record of other code, whatever it counted there.

    Raises:
        AnchorError: it is one, and of which code.
    """
    if changed:
        raise AnchorError(
            f"the record {record.comparison} is of other code, and tells nothing of "
            f"this: {tell(changed)}",
            ["run the comparison again, and hold the words against the new record"],
        )


def _hold_calls(
    check: RunCheck, calls: int, record: Record, span: Span | None, ground: Ground
) -> Proof:
    counts = [
        sum(
            event.op == check.operation
            and check.phase in (None, event.phase)
            and (span is None or _is_through(rank.stacks[event.stack], span))
            for event in (rank.mini if check.side == "mini" else rank.upstream)
        )
        for rank in record.events
    ]
    each = [say_calls(str(check.operation), count) for count in counts]
    said = (
        f"{each[0]} a rank"
        if len(set(counts)) == 1
        else "; ".join(f"rank {rank} {row}" for rank, row in enumerate(each))
    )
    phase = f", {check.phase}" if check.phase else ""
    return Proof(
        "holds" if set(counts) == {calls} else "false",
        f"{check.record} ({check.side}{phase}): {said or 'no events'}",
        ground.home_of(span.path) if span else "",
        (span,) if span else (),
    )


def _is_through(stack: Iterable[Any], span: Span) -> bool:
    return any(
        site.path == span.path and span.first <= site.line <= span.last
        for site in stack
    )


def _span(anchor: Anchor | None, ground: Ground) -> Span | None:
    if anchor is None:
        return None
    return ground.sources(anchor.file).resolve(anchor)


def _seen(record: Record, span: Span, ground: Ground) -> Any:
    upstream = ground.upstreams[ground.home_of(span.path)]
    blob = blob_id(ground.read(span.path))
    found = lit([record], upstream.name, span, commit=upstream.commit, blob=blob)
    if not found:
        raise AnchorError(
            f"the record {record.comparison} did not watch {span.path}: it watched "
            + ", ".join(record.pins)
        )
    return found[0]


def hold_value(says: str, check: ValueCheck, ground: Ground) -> Proof:
    """Hold a formula against the numbers that the words print."""
    names: dict[str, int | float] = {}
    found: list[Found] = []
    for name, given in check.names.items():
        if isinstance(given, DefaultPlace):
            place, known = _number(given, ground)
            found.append(place)
            names[name] = known
        else:
            names[name] = given
    value = evaluate(check.of, names, FUNCTIONS)
    printed = [*numbers_in(says)]
    fits = any(number.prints(value) for number in printed)
    said = f"{check.of} is {number_text(value)}"
    if not fits:
        got = ", ".join(dict.fromkeys(number.text for number in printed))
        said += f", and the words print {got or 'no number'}"
    if found:
        return verdict_on(ground, found, said, holds=fits, code=said)
    return Proof("holds" if fits else "false", said)


def _number(place: DefaultPlace, ground: Ground) -> tuple[Found, int | float]:
    found, value = find_default(place.of, ground.file(place.file))
    code = (value.text or b"").decode() if value else ""
    is_field = value is not None and is_of_field(value)
    try:
        known = default_value(place, code, is_field=is_field)
    except NoLiteral:
        known = None
    if isinstance(known, bool) or not isinstance(known, (int, float)):
        raise AnchorError(f"{default_is(place, found, code)}, which is no number")
    return found, known


def hold_experiment(check: ExperimentCheck, ground: Ground) -> Proof:
    """Hold a program's shape, and what it printed where that is kept and fresh."""
    text = ground.program(check.name)
    file = f"annotations/experiments/{check.name}.py"
    if text is None:
        raise AnchorError(f"no program {file}")
    if wrong := program_fault(text, check.prints):
        raise AnchorError(f"{file}: {wrong}")
    run = typed("prove", "--all", "--keep")
    if (kept := ground.output(check.name)) is None:
        return Proof(
            "open", f"programs prove them, and no output is kept: {run}", program=text
        )
    output, changed = kept
    if changed:
        why = f"what programs printed is stale, {tell(changed)}: {run}"
        return Proof("open", why, output=output, program=text)
    figures = output.figures()
    other = unlike(figures, check.prints)
    said = f"{file} printed {say_figures(figures, other or check.prints)}"
    state: ProofState = "false" if other else "holds"
    return Proof(state, said, output=output, program=text)

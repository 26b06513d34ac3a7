"""From what two runs measured to what the fault did: pure comparisons of numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mini_impls.failures import RankFailedError
from readerkit.model.language import Say, english

Measures = Mapping[str, float]
"""What one rank measured, by a name of `MEASURES`."""
UNDER_WAY = "calls under way while there was work to do"
"""The measure of overlap: sent before a product, and waited for after it."""
HELD = {
    "parameters": "bytes of parameters",
    "gradients": "bytes of gradients",
    "optimizer state": "bytes of optimizer state",
    "shards": "bytes of shards",
    "gathered parameters": "bytes of gathered parameters",
    "keys and values": "bytes of keys and values",
}
"""What is held of each kind of memory."""
MEASURES = frozenset(
    {
        "apart between ranks",
        "apart from one process",
        "apart from the sum",
        "bubble over ideal time",
        "first loss",
        "distance of the gradient from one process's",
        "gradient over one process's",
        "gradients",
        "last loss",
        "last loss of one process",
        "microbatches in flight",
        "norm of gradients",
        "norm over one process's",
        "share of dropout that agrees between ranks",
        "share of new tokens as without a cache",
        "share of weights that never moved",
        UNDER_WAY,
        *HELD.values(),
    }
)
"""Everything that a work may measure: what is asked for by another name is an error."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended, and what its ranks measured if it came to its end."""

    ranks: Sequence[Measures] = ()
    failure: RankFailedError | None = None
    """What the launcher said of a run that did not come to its end."""

    def __post_init__(self) -> None:
        """Refuse a measure that no symptom could ask for."""
        _known(*(name for rank in self.ranks for name in rank))

    @property
    def hung(self) -> bool:
        """Whether ranks waited for what never came."""
        return self.failure is not None and self.failure.hung

    def column(self, name: str) -> list[float]:
        """Return one measure of every rank; empty where the work has none."""
        _known(name)
        return [rank[name] for rank in self.ranks if name in rank]

    def most(self, name: str) -> float:
        """Return the largest value over the ranks, 0 where there is none."""
        return max(self.column(name), default=0.0)


def _known(*names: str) -> None:
    """Raise KeyError for what no work measures: a typo would stand for zero."""
    if unknown := {*names} - MEASURES:
        raise KeyError(f"no measure is called {unknown}")


Shown = Callable[[Outcome, Outcome], bool]


@dataclass(frozen=True, slots=True)
class Symptom:
    """What a fault may do, and how two runs show it."""

    shown: Shown
    sign: str
    """What the runs would have had to show, as the end of a sentence."""
    measures: tuple[str, ...] = ()
    """What it is told by."""

    def __post_init__(self) -> None:
        """Refuse a measure that nothing measures."""
        _known(*self.measures)


def hangs(right: Outcome, wrong: Outcome) -> bool:
    """Say whether ranks waited until the timeout."""
    return wrong.hung


def fails(right: Outcome, wrong: Outcome) -> bool:
    """Say whether a rank raised an error at once."""
    return bool(wrong.failure) and not wrong.hung


def drifts(right: Outcome, wrong: Outcome) -> bool:
    """Say whether parameters that are one on all ranks became different."""
    return wrong.most("apart between ranks") > 1e-4 > right.most("apart between ranks")


def scaled(right: Outcome, wrong: Outcome) -> bool:
    """Say whether gradients are a whole multiple of what they should be."""
    ratio = wrong.most("gradient over one process's")
    return ratio > 1.5 and abs(ratio - round(ratio)) < 1e-3


def does_not_learn(right: Outcome, wrong: Outcome) -> bool:
    """Say whether the loss stays where the right run's falls."""

    def fall(run: Outcome) -> float:
        return run.most("first loss") - run.most("last loss")

    return bool(wrong.ranks) and fall(wrong) < 0.25 * fall(right)


def starts_elsewhere(right: Outcome, wrong: Outcome) -> bool:
    """Say whether the first loss differs: the forward pass itself is wrong."""
    return (
        bool(wrong.ranks)
        and abs(right.most("first loss") - wrong.most("first loss")) > 1e-4
    )


def holds_more(right: Outcome, wrong: Outcome) -> bool:
    """Say whether more is held of some kind of memory."""
    return any(wrong.most(name) > 1.2 * right.most(name) for name in HELD.values())


def sends_late(right: Outcome, wrong: Outcome) -> bool:
    """Say whether nothing travels any more while there is work to do."""
    return bool(wrong.ranks) and right.most(UNDER_WAY) > 0 == wrong.most(UNDER_WAY)


def drops_alike(right: Outcome, wrong: Outcome) -> bool:
    """Say whether all ranks drop the same places of their shards."""
    name = "share of dropout that agrees between ranks"
    return wrong.most(name) == 1.0 > right.most(name)


def keeps_activations(right: Outcome, wrong: Outcome) -> bool:
    """Say whether a stage holds the activations of more microbatches."""
    name = "microbatches in flight"
    pairs = zip(right.column(name), wrong.column(name), strict=False)
    return any(after > before for before, after in pairs)


def stands_still(right: Outcome, wrong: Outcome) -> bool:
    """Say whether most weights did not move at all."""
    name = "share of weights that never moved"
    return wrong.most(name) > 0.5 > right.most(name)


def widens_the_bubble(right: Outcome, wrong: Outcome) -> bool:
    """Say whether a rank idles for a larger part of its time."""
    name = "bubble over ideal time"
    return wrong.most(name) > right.most(name)


def ends_elsewhere(right: Outcome, wrong: Outcome) -> bool:
    """Say whether what one process computes is no longer computed."""
    name = "apart from one process"
    return wrong.most(name) > 1e-4 > right.most(name)


def clips_by_another_norm(right: Outcome, wrong: Outcome) -> bool:
    """Say whether a rank takes another norm than one process has."""
    names = [run.column("norm over one process's") for run in (right, wrong)]
    off = [any(abs(ratio - 1) > 1e-3 for ratio in column) for column in names]
    return off == [False, True]


def leads_elsewhere(right: Outcome, wrong: Outcome) -> bool:
    """Say whether a gradient is off, beside its size, that was right before."""
    name = "distance of the gradient from one process's"
    return wrong.most(name) > 1e-3 > right.most(name)


def writes_another_text(right: Outcome, wrong: Outcome) -> bool:
    """Say whether the tokens are no longer those of a run without a cache."""
    name = "share of new tokens as without a cache"
    return min(wrong.column(name), default=1.0) < 1.0 == min(right.column(name))


def is_unchanged(right: Outcome, wrong: Outcome) -> bool:
    """Say whether nothing that was measured differs."""
    return bool(wrong.ranks) and list(right.ranks) == list(wrong.ranks)


SYMPTOMS: Mapping[str, Symptom] = {
    "hang": Symptom(hangs, "a run that waits until its time is out"),
    "error": Symptom(fails, "a rank that ends by an error of its own"),
    "drift": Symptom(
        drifts,
        "weights that end more than 0.0001 apart between ranks",
        ("apart between ranks",),
    ),
    "factor": Symptom(
        scaled,
        "gradients of twice or more times the right size, by a whole number",
        ("gradient over one process's", "norm of gradients"),
    ),
    "no descent": Symptom(
        does_not_learn,
        "a loss that falls by less than a quarter of what it should",
        ("first loss", "last loss"),
    ),
    "first loss": Symptom(
        starts_elsewhere,
        "a first loss more than 0.0001 away from the right one",
        ("first loss",),
    ),
    "memory": Symptom(
        holds_more, "more than 1.2 times the bytes of one kind", tuple(HELD.values())
    ),
    "late": Symptom(
        sends_late, "no call under way any more while there is work", (UNDER_WAY,)
    ),
    "same masks": Symptom(
        drops_alike,
        "all ranks dropping the same places",
        ("share of dropout that agrees between ranks",),
    ),
    "in flight": Symptom(
        keeps_activations,
        "more microbatches in flight on some rank",
        ("microbatches in flight",),
    ),
    "bubble": Symptom(
        widens_the_bubble,
        "a larger bubble",
        ("bubble over ideal time",),
    ),
    "gradient": Symptom(
        leads_elsewhere,
        "a gradient more than 0.001 of its size from one process's",
        ("distance of the gradient from one process's",),
    ),
    "apart": Symptom(
        ends_elsewhere,
        "values that end more than 0.0001 from those of one process",
        ("apart from one process",),
    ),
    "norm": Symptom(
        clips_by_another_norm,
        "a norm that is not one process's",
        ("norm over one process's",),
    ),
    "other text": Symptom(
        writes_another_text,
        "tokens that a run without a cache does not choose",
        ("share of new tokens as without a cache",),
    ),
    "unmoved": Symptom(
        stands_still,
        "more than half of the weights where they were",
        ("share of weights that never moved",),
    ),
    "nothing": Symptom(is_unchanged, "no measure that differs between the two runs"),
}


def shown(right: Outcome, wrong: Outcome, symptoms: Sequence[str]) -> list[int]:
    """Return which of `symptoms`, by place, the two runs show."""
    return [i for i, key in enumerate(symptoms) if SYMPTOMS[key].shown(right, wrong)]


def refutation(right: Outcome, wrong: Outcome, symptom: str, say: Say = english) -> str:
    """Return why a symptom is not what happened: its sign, and what was seen instead.

    The symptom must be one that the runs do not show.
    """
    expected = SYMPTOMS[symptom]
    seen = _seen_instead(right, wrong, expected, say)
    return say("it would be {sign}; {seen}").format(sign=say(expected.sign), seen=seen)


def _seen_instead(right: Outcome, wrong: Outcome, expected: Symptom, say: Say) -> str:
    if wrong.hung:
        return say(
            "the run with the fault waited until the timeout, and came to no measure"
        )
    if wrong.failure:
        return say("the run with the fault ended by an error, and came to no measure")
    if expected.shown in (hangs, fails):
        return say("the run with the fault came to its end on every rank")
    names = list(right.ranks[0])
    if expected.shown is is_unchanged:
        differ = [name for name in names if right.column(name) != wrong.column(name)]
        return say("these differ: {names}").format(names=", ".join(map(say, differ)))
    row = say("{name} is {wrong} with the fault, {right} without")
    return "; ".join(
        row.format(
            name=say(name), wrong=_most(wrong, name, say), right=_most(right, name, say)
        )
        for name in names
        if name in expected.measures
    )


def _most(run: Outcome, name: str, say: Say) -> str:
    low, high = (show_number(end(run.column(name)), name) for end in (min, max))
    return high if low == high else say("{low} to {high}").format(low=low, high=high)


def show_number(value: float, name: str) -> str:
    """Return a measure as it is printed."""
    if name in HELD.values():
        return f"{value:,.0f}"
    return f"{value:.0f}" if value == int(value) else f"{value:.4g}"

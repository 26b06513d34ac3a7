"""From what two runs measured to what the fault did: pure comparisons of numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Measures = Mapping[str, float]
"""What one rank measured: `work.py` says what each name stands for."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended, and what its ranks measured if it came to its end."""

    ranks: Sequence[Measures] = ()
    failure: str = ""
    """What the launcher said of a run that did not come to its end."""

    @property
    def hung(self) -> bool:
        """Whether ranks waited for what never came, until the time was out.

        Or until those they waited for had ended, which closes the connection.
        """
        said = self.failure.partition("\nTraceback")[0].lower()
        return "timed out" in said or "is missing" in said

    def column(self, name: str) -> list[float]:
        """Return one measure of every rank; empty where the work has none."""
        return [rank[name] for rank in self.ranks if name in rank]

    def most(self, name: str) -> float:
        """Return the largest value over the ranks, 0 where there is none."""
        return max(self.column(name), default=0.0)


Shown = Callable[[Outcome, Outcome], bool]


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
    names = [name for name in (right.ranks or ({},))[0] if name.startswith("bytes of")]
    return any(wrong.most(name) > 1.2 * right.most(name) for name in names)


def sends_late(right: Outcome, wrong: Outcome) -> bool:
    """Say whether nothing travels any more while there is work to do."""
    name = "sent while there was work to do"
    return bool(wrong.ranks) and right.most(name) > 0 == wrong.most(name)


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


def is_unchanged(right: Outcome, wrong: Outcome) -> bool:
    """Say whether nothing that was measured differs."""
    return bool(wrong.ranks) and list(right.ranks) == list(wrong.ranks)


SYMPTOMS: Mapping[str, Shown] = {
    "hang": hangs,
    "error": fails,
    "drift": drifts,
    "factor": scaled,
    "no descent": does_not_learn,
    "first loss": starts_elsewhere,
    "memory": holds_more,
    "late": sends_late,
    "same masks": drops_alike,
    "in flight": keeps_activations,
    "unmoved": stands_still,
    "nothing": is_unchanged,
}


def shown(right: Outcome, wrong: Outcome, symptoms: Sequence[str]) -> list[int]:
    """Return which of `symptoms`, by place, the two runs show."""
    return [i for i, key in enumerate(symptoms) if SYMPTOMS[key](right, wrong)]

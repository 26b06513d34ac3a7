"""What the verdict of a comparison does not say: what nobody saw, what did not run."""

from collections.abc import Iterator, Sequence

from mini_impls.compare.rank_worker import RankResult
from mini_impls.compare.sides import Comparison
from mini_impls.compare.tables import sides_of
from mini_impls.model import build_model
from readerkit.evidence.record import Limit

ALWAYS = (
    Limit(
        "unseen",
        "order between ranks",
        "the calls of each rank are aligned by themselves, without a common clock",
    ),
    Limit(
        "unseen",
        "random numbers of Python and NumPy",
        "torch's streams are compared, no others",
    ),
    Limit(
        "unseen",
        "memory that set-up made",
        "beyond parameters, gradients and optimizer state it is counted once a step "
        "uses it",
    ),
)


def limits(comparison: Comparison, results: Sequence[RankResult]) -> tuple[Limit, ...]:
    """Return all that bears on this comparison."""
    return (
        *_unseen_waits(results),
        *ALWAYS,
        *_uncovered(comparison, results),
        *comparison.limits,
    )


def _unseen_waits(results: Sequence[RankResult]) -> Iterator[Limit]:
    for name in ("mini", "upstream"):
        events = [e for r in results for e in dict(sides_of(r))[name].events]
        unseen = sum(event.wait is None for event in events)
        if unseen:
            yield Limit(
                "unseen",
                f"waits of {name}: {unseen} of {len(events)} calls",
                "C++ waits, or nobody does",
            )


def _uncovered(
    comparison: Comparison, results: Sequence[RankResult]
) -> Iterator[Limit]:
    """Yield what the work of this comparison does not have, from the work itself."""
    config = comparison.config
    params = list(build_model(config).parameters())
    sent = {e.dtype for r in results for _, s in sides_of(r) for e in s.events}
    lacks = {
        "mixed precision": not sent & {"float16", "bfloat16"},
        "dropout": config.hidden_dropout == 0,
        "tied weights": not config.share_embeddings_and_output_weights,
        "frozen or unused parameters": all(param.requires_grad for param in params),
        "gradients of several backward passes": comparison.microbatches == 1,
        "activation checkpointing": True,
        "groups of some of the ranks": True,
    }
    for what, is_lacking in lacks.items():
        if is_lacking and what not in comparison.covers:
            yield Limit("uncovered", what, "")

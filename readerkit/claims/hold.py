"""Holds one claim: each kind of check is one function from it to a verdict."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from readerkit.claims import beside, source
from readerkit.claims.elsewhere import stands_elsewhere
from readerkit.claims.ground import Ground, NotAtHand
from readerkit.claims.proof import Proof
from readerkit.content.claims import CheckKind, Claim
from readerkit.errors import AnchorError, EstimateError
from readerkit.model.expression import ExpressionError

_HOLD: dict[CheckKind, Callable[[Any, Ground], Proof]] = {
    "default": source.hold_default,
    "stands": source.hold_stands,
    "absent": source.hold_absent,
    "uses": source.hold_uses,
    "order": source.hold_order,
    "guard": source.hold_guard,
    "run": beside.hold_run,
    "experiment": beside.hold_experiment,
}


def hold(claim: Claim, ground: Ground) -> Proof:
    """Return whether a claim holds, with what was found and where."""
    try:
        if claim.undecided is not None:
            return Proof("open", claim.undecided)
        if claim.value is not None:
            return beside.hold_value(claim.says, claim.value, ground)
        return _HOLD[claim.kind](claim.check, ground)
    except NotAtHand as error:
        return Proof("open", str(error))
    except (ExpressionError, EstimateError) as error:
        return Proof("lost", str(error))
    except AnchorError as error:
        near = (*stands_elsewhere(claim, ground), *error.candidates)
        return Proof("lost", error.reason, near=near)

"""Holds one claim: each kind of check is one function from it to a verdict."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from readerkit.claims import code_checks, result_checks
from readerkit.claims.elsewhere import stands_elsewhere
from readerkit.claims.ground import Ground, NotAtHand
from readerkit.claims.proof import Proof
from readerkit.content.claims import CheckKind, Claim
from readerkit.errors import AnchorError, EstimateError
from readerkit.model.expression import ExpressionError

_HOLD: dict[CheckKind, Callable[[Any, Ground], Proof]] = {
    "default": code_checks.hold_default,
    "stands": code_checks.hold_stands,
    "absent": code_checks.hold_absent,
    "uses": code_checks.hold_uses,
    "order": code_checks.hold_order,
    "guard": code_checks.hold_guard,
    "run": result_checks.hold_run,
    "experiment": result_checks.hold_experiment,
}


def hold(claim: Claim, ground: Ground) -> Proof:
    """Return whether a claim holds, with what was found and where."""
    try:
        if claim.undecided is not None:
            return Proof("open", claim.undecided)
        if claim.value is not None:
            return result_checks.hold_value(claim.says, claim.value, ground)
        return _HOLD[claim.kind](claim.check, ground)
    except NotAtHand as error:
        return Proof("open", str(error))
    except (ExpressionError, EstimateError) as error:
        return Proof("lost", str(error))
    except AnchorError as error:
        near = (*stands_elsewhere(claim, ground), *error.candidates)
        return Proof("lost", error.reason, near=near)

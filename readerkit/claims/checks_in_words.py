"""What a check asks for, in words: shown beside the sentence that it holds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from readerkit.content.claims import (
    AbsentCheck,
    CheckKind,
    Claim,
    DefaultCheck,
    DefaultPlace,
    ExperimentCheck,
    GuardCheck,
    OrderCheck,
    RunCheck,
    UsesCheck,
    ValueCheck,
)
from readerkit.evidence.executed_lines import say_calls
from readerkit.model.anchor import Anchor
from readerkit.model.formula_text import number_text
from readerkit.model.language import Say, english


def say_check(claim: Claim, say: Say = english) -> str:
    """Return a check in words; code in backquotes, as notes have it."""
    return _SAY[claim.kind](claim.check, say)


def say_printed(claim: Claim, say: Say = english) -> str:
    """Return the same of an experiment whose figures are shown beside it."""
    name = claim.experiment.name if claim.experiment else ""
    return say("the program {name} prints").format(name=_code(f"{name}.py"))


def _code(text: object) -> str:
    """Return code between backquotes, two of them where it has one itself."""
    mark = "``" if "`" in str(text) else "`"
    return f"{mark}{text}{mark}"


def _each(texts: Iterable[object]) -> str:
    return ", ".join(map(_code, texts))


def _default(check: DefaultCheck, say: Say) -> str:
    value = check.code if check.code is not None else repr(check.literal)
    told = say("{name} is {value} by default")
    if check.of.startswith("-"):
        told = say("what {name} sets is {value} by default")
    return told.format(name=_code(check.of), value=_code(value))


def _stands(check: Anchor, say: Say) -> str:
    code = " … ".join(filter(None, (check.code, check.start, check.stop)))
    if not code:
        return say("{name} is defined").format(name=_code(check.symbol or check.query))
    told = say("{code} stands in {place}")
    return told.format(code=_code(code), place=_code(check.symbol or check.file))


def _absent(check: AbsentCheck, say: Say) -> str:
    what = check.code or check.name or check.text
    places = [check.symbol] if check.symbol else check.places
    return say("{code} stands nowhere in {place}").format(
        code=_code(what), place=_each(places)
    )


def _uses(check: UsesCheck, say: Say) -> str:
    words = {
        "call": say("called"),
        "set": say("set"),
        "read": say("read"),
        "any": say("used"),
    }
    uses = {"name": _code(check.of), "used": words[check.how]}
    if check.are:
        told = say("{name} is {used} in these places and no others: {places}")
        return told.format(**uses, places=_each(check.are))
    few = (
        say("{name} is {used} nowhere in {place}"),
        say("{name} is {used} once in {place}"),
    )
    count = check.count or 0
    many = say("{name} is {used} {count} times in {place}")
    told = few[count] if count < len(few) else many
    return told.format(**uses, count=count, place=_each(check.places))


def _order(check: OrderCheck, say: Say) -> str:
    then = say(", then ").join(map(_code, check.code))
    place = _code(check.symbol or check.file)
    return say("in {place}: {codes}").format(place=place, codes=then)


def _guard(check: GuardCheck, say: Say) -> str:
    told = say("{code} is reached only if {condition} is true")
    if check.under is None:
        told = say("{code} is reached only if {condition} is false")
    condition = _code(check.under or check.unless)
    code = _code(check.code) + (f" ({check.nth})" if check.nth else "")
    return told.format(code=code, condition=condition)


def _run(check: RunCheck, say: Say) -> str:
    record = _code(check.record)
    if check.calls is not None:
        side = say("mini") if check.side == "mini" else say("upstream")
        calls = say_calls(str(check.operation), check.calls)
        told = say("the record {record} has {calls} a rank ({side})")
        return told.format(record=record, calls=calls, side=side)
    told = say("these lines ran in the record {record}")
    if not check.ran:
        told = say("these lines did not run in the record {record}")
    return told.format(record=record)


def _value(check: ValueCheck, say: Say) -> str:
    given = {
        name: known.of if isinstance(known, DefaultPlace) else number_text(known)
        for name, known in check.names.items()
    }
    names = ", ".join(f"{name} = {known}" for name, known in given.items())
    told = say("the number is {formula}").format(formula=_code(check.of))
    return f"{told} ({names})" if names else told


def _experiment(check: ExperimentCheck, say: Say) -> str:
    told = say("the program {name} prints {figures}")
    printed = check.prints.items()
    figures = _each(f"{name} = {json.dumps(value)}" for name, value in printed)
    return told.format(name=_code(f"{check.name}.py"), figures=figures)


def _undecided(check: str, say: Say) -> str:
    return say("no program decides this: {why}").format(why=check)


_SAY: dict[CheckKind, Callable[[Any, Say], str]] = {
    "default": _default,
    "stands": _stands,
    "absent": _absent,
    "uses": _uses,
    "order": _order,
    "guard": _guard,
    "run": _run,
    "value": _value,
    "experiment": _experiment,
    "undecided": _undecided,
}

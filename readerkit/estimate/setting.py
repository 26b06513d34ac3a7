"""One setting of the instrument, asked for single items of what commands say of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from readerkit.errors import EstimateError
from readerkit.estimate.instrument import QUESTIONS, Dials, Shipped, answer
from readerkit.estimate.item import Estimate, Item
from readerkit.wording.meant_name import choose


def dials_of(words: Iterable[str]) -> Dials:
    """Return a setting as ``KEY=VALUE`` say it.

    >>> dials_of(["dp=8", "flash=false"]).dp
    8

    Raises:
        ReaderkitError: no such dial, or a value that it cannot have.
    """
    values: dict[str, Any] = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not sign:
            raise EstimateError(f"got '{word}', expected KEY=VALUE, as dp=8")
        dial = choose("dial", name, Dials._fields)
        values[dial] = _read(dial, value)
    return Dials(**values)


def _read(name: str, value: str) -> Any:
    usual = Dials._field_defaults[name]
    if isinstance(usual, str):
        return value
    if isinstance(usual, bool):
        if value not in ("true", "false"):
            raise EstimateError(f"{name}: got '{value}', expected true or false")
        return value == "true"
    if not value.isdecimal():
        raise EstimateError(f"{name}: got '{value}', expected a whole number")
    return int(value)


def estimates_at(
    question: str, setting: Mapping[str, Any], known: Shipped
) -> list[Estimate]:
    """Return what a command says of a setting.

    Raises:
        ReaderkitError: no such question or dial, or what the command refuses.
    """
    asked = choose("question of an estimate", question, QUESTIONS)
    dials = {
        choose("dial", name, Dials._fields): each for name, each in setting.items()
    }
    return asked_at(asked, Dials(**dials), known)


def asked_at(question: str, setting: Dials, known: Shipped) -> list[Estimate]:
    """Return what a command says of a setting.

    Raises:
        EstimateError: what the command refuses.
    """
    answered = answer(question, setting, known)
    if answered.refusal:
        raise EstimateError(answered.refusal)
    return [*answered.estimates]


def item_of(estimates: Iterable[Estimate], question: str, item: str) -> Item:
    """Return an item by its name; the last estimate is what was asked for.

    Raises:
        ReaderkitError: no such item.
    """
    found = {each.name: each for estimate in estimates for each in estimate.items}
    return found[choose(f"item of estimate {question}", item, found)]

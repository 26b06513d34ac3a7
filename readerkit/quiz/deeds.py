"""What a statement does, as it is said to who took it for another one."""

from __future__ import annotations

from collections.abc import Mapping

from readerkit.model.language import Told
from readerkit.model.statement import Deed, Statement
from readerkit.quiz.lock import ResolvedPlace
from readerkit.quiz.prompts import CitedLines

DEEDS: Mapping[Deed, str] = {
    "comment": "a comment, which runs nothing",
    "docstring": "a docstring, which runs nothing",
    "blank": "empty",
    "defines": "opens a definition, whose body is indented below",
    "condition": "tests under which condition the lines indented below run",
    "repeats": "repeats the lines indented below while a condition holds",
    "loop": "opens a loop, which repeats the lines indented below",
    "context": "opens a context, in which the lines indented below run",
    "branch": "opens a branch, whose lines are indented below",
    "assigns": "computes a value and keeps it",
    "changes": "changes a value that is there",
    "calls": "calls something for its effect",
    "returns": "returns, after which nothing more of this function runs",
    "raises": "raises an error, after which nothing more of this function runs",
    "asserts": "checks a condition, and stops with an error where it does not hold",
    "imports": "imports a name",
    "decorates": "a decorator, which wraps the definition below",
    "declares": "declares a name, and gives it no value",
    "deletes": "deletes a name",
    "passes": "does nothing",
    "continues": "goes on with the next turn of the loop",
    "breaks": "ends the loop",
    "other": "another statement than the one that is asked for",
}
_NAMED: Mapping[Deed, str] = {
    "defines": "opens the definition of `{name}`, whose body is indented below",
    "assigns": "keeps a value as `{name}`",
    "changes": "changes `{name}`, which is there already",
    "condition": "decides by `{name}` whether the lines indented below run",
    "repeats": "repeats the lines indented below while a test of `{name}` holds",
    "loop": "goes through `{name}`, each time with the lines indented below",
    "context": "opens `{name}`, in which the lines indented below run",
    "raises": "raises `{name}`, after which nothing more of this function runs",
    "asserts": "checks `{name}`, and stops with an error where it does not hold",
    "decorates": "the decorator `{name}`, which wraps the definition below",
    "declares": "declares `{name}`, and gives it no value",
    "deletes": "deletes `{name}`",
}
_BY: Mapping[Deed, str] = {
    "assigns": "keeps what `{by}` returns as `{name}`",
    "changes": "changes `{name}` by what `{by}` returns",
    "calls": "calls `{by}`",
    "returns": "returns what `{by}` returns",
}


def told_deed(statement: Statement) -> Told:
    """Return what a statement does, in the words of all such statements."""
    name, by, does = statement.name, statement.by, statement.does
    if by and does in _BY and (name or does in ("calls", "returns")):
        return Told(_BY[does], name=name, by=by)
    if name and does in _NAMED:
        return Told(_NAMED[does], name=name)
    return Told(DEEDS[does])


def the_lines(first: int, last: int) -> Told:
    """Return how lines are called."""
    if first == last:
        return Told("Line {first}", first=first)
    return Told("Lines {first} to {last}", first=first, last=last)


def part_of(whole: CitedLines, first: int, last: int) -> CitedLines:
    """Return some of the lines of a place."""
    place = ResolvedPlace(whole.upstream, whole.path, first, last, whole.blob)
    return CitedLines.of(place)

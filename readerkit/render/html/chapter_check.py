"""What no page can be made of: fences that name nothing, numbers without a value."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest

from readerkit.content.chapters import ChapterText, Part, parts_of
from readerkit.content.inline_numbers import inline_numbers
from readerkit.errors import ContentError, ContentFault
from readerkit.render.html.chapter_pieces import check_numbers, rendered, schedule
from readerkit.render.html.computed import Computed
from readerkit.render.html.fences import ask, mini_of
from readerkit.render.html.mechanism_list import MECHANISMS
from readerkit.render.html.setting_card import asked_setting
from readerkit.render.html.supplies import Supplies
from readerkit.render.html.words import Words


@dataclass(frozen=True, slots=True)
class Named:
    """What the fences of a text may name, and its numbers may call."""

    notes: Container[str]
    diagrams: Container[str]
    tours: Container[str]
    supplies: Supplies


def check_chapter(script: ChapterText, named: Named) -> Iterator[ContentFault]:
    """Yield what no page can be made of."""
    english = list(parts_of(script.text, script.file))
    spanish = list(parts_of(script.spanish, script.spanish_file))
    numbers = Computed(named.supplies.functions)
    yield from numbers.define(script)
    each = partial(_check, named, numbers)
    checks = [partial(each, part) for part in (*english, *spanish)]
    if script.spanish:
        checks.append(partial(check_equal, english, spanish))
    for check in checks:
        try:
            check()
        except ContentError as error:
            yield from error.faults


def check_equal(english: list[Part], spanish: list[Part]) -> None:
    """Refuse a Spanish text that shows or computes what the English one does not.

    Raises:
        ContentError: the first place where it does.
    """
    for ours, theirs in zip_longest(english[1::2], spanish[1::2]):
        expected = f"'{ours.shows}'" if ours else "the end"
        if theirs is None:
            raise spanish[-1].fault("the English text shows more", "", expected)
        if ours is None or ours.shows != theirs.shows:
            what = "not what the English text shows here"
            raise theirs.fault(what, f"'{theirs.shows}'", expected)
    known = {each.expression for part in english for each in inline_numbers(part.body)}
    for part in spanish:
        for each in inline_numbers(part.body):
            if each.expression not in known:
                row = part.at + part.body.count("\n", 0, each.start)
                what = "a number that the English text does not have"
                got = f"'{each.expression}'"
                raise ContentError([ContentFault(part.file, row, 1, what, got)])


def check_known(part: Part, names: Container[str]) -> None:
    """Refuse a fence whose name nothing has.

    Raises:
        ContentError: at the line of the fence.
    """
    if part.name not in names:
        raise part.fault(f"unknown {part.kind}", part.name)


def _check(named: Named, numbers: Computed, part: Part) -> None:
    if part.kind == "note":
        check_known(part, named.notes)
    elif part.kind == "diagram":
        check_known(part, named.diagrams)
    elif part.kind == "mechanism":
        check_known(part, MECHANISMS)
    elif part.kind == "schedule":
        schedule(Words(), part)
    elif part.kind in ("predict", "question"):
        ask(part, named.supplies.ask)
    elif part.kind == "setting":
        asked_setting(part, named.supplies.compute)
        check_numbers(replace(part, at=part.at + 1), numbers)
    elif part.kind == "mini":
        mini_of(part, named.supplies.minis)
    elif part.kind == "tour":
        check_known(part, named.tours)
    elif not part.kind:
        rendered(part, numbers)

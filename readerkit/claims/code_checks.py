"""Holds a claim against source: a default, places and their absence, uses, order."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations, pairwise
from typing import Any

from readerkit.anchors.code_search import (
    Found,
    check_readable,
    check_whole,
    find_code,
    find_names,
    find_uses,
    find_words,
    first_code,
    found_at,
    only_python,
    scopes_of,
)
from readerkit.anchors.conditions import facts_at, never_both
from readerkit.anchors.settings import find_default, is_like, is_of_field
from readerkit.anchors.suggestions import shorten
from readerkit.claims.ground import Ground
from readerkit.claims.literals import NoLiteral, is_equal, literal_of, option_default
from readerkit.claims.proof import Proof
from readerkit.content.claims import (
    AbsentCheck,
    DefaultCheck,
    DefaultPlace,
    GuardCheck,
    OrderCheck,
    UsesCheck,
)
from readerkit.errors import AnchorError
from readerkit.model.anchor import Anchor
from readerkit.model.freshness import digest
from readerkit.wording.numbers import counted

MAX_SHOWN = 8
MAX_NEAR = 3


def verdict_on(
    ground: Ground,
    found: Iterable[Found],
    said: str = "",
    *,
    holds: bool = True,
    path: str = "",
    code: str = "",
) -> Proof:
    """Return a verdict on some places; it rests on their code, or the part given."""
    places = list(found)
    code = code or "\n".join(f"{each.symbol} {each.text}" for each in places)
    spans = tuple(dict.fromkeys(each.span for each in places))
    return Proof(
        "holds" if holds else "false",
        said or _listed(map(str, places)),
        ground.home_of(spans[0].path if spans else path),
        spans,
        {"its code": digest(code)[:16]} if code else {},
    )


def _listed(rows: Iterable[str]) -> str:
    every = list(rows)
    more = len(every) - MAX_SHOWN
    return "; ".join(every[:MAX_SHOWN]) + (f" and {more} more" if more > 0 else "")


# --- a default ------------------------------------------------------------------------


def hold_default(check: DefaultCheck, ground: Ground) -> Proof:
    """Hold the default of a field, a parameter, an option or a constant."""
    source = ground.file(check.file)
    only_python(source, "a default")
    found, value = find_default(check.of, source)
    written = (value.text or b"").decode() if value else ""
    code = " ".join(written.split())
    if check.code is not None:
        holds = value is not None and is_like(check.code, value, source)
        return verdict_on(ground, [found], default_is(check, found, code), holds=holds)
    if not value:
        return verdict_on(ground, [found], default_is(check, found, ""), holds=False)
    try:
        known = default_value(check, written, is_field=is_of_field(value))
    except NoLiteral as error:
        code = f"{error}" if check.of.startswith("-") else code
        what = f"{default_is(check, found, code)}, which is no literal: ask for 'code'"
        raise AnchorError(what) from None
    return verdict_on(
        ground,
        [found],
        default_is(check, found, repr(known)),
        holds=is_equal(known, check.literal),
        code=repr(known),
    )


def default_value(place: DefaultPlace, code: str, *, is_field: bool) -> Any:
    """Return what a default is worth.

    Raises:
        NoLiteral: none is written, or no literal.
    """
    if place.of.startswith("-"):
        return option_default(code)
    if not code:
        raise NoLiteral("nothing")
    return literal_of(code, is_field=is_field)


def default_is(place: DefaultPlace, found: Found, value: str) -> str:
    """Return in words where a default is written and what it is."""
    at = f"{found.span.path}:{found.span.first}"
    name = f"what {place.of} sets" if place.of.startswith("-") else place.of
    return f"{at}: {name} is {shorten(value) or 'without a default'}"


# --- places and their absence ---------------------------------------------------------


def hold_stands(check: Anchor, ground: Ground) -> Proof:
    """Hold that an anchor resolves."""
    source = ground.file(check.file)
    span = ground.sources(check.file).resolve(check)
    lines = (source.line(n).strip() for n in range(span.first, span.last + 1))
    code = " ".join(line for line in lines if line and not line.startswith("#"))
    return Proof(
        "holds",
        f"{span.path}:{span.first}: {shorten(source.line(span.first))}",
        ground.home_of(span.path),
        (span,),
        {"its code": digest(code)[:16]},
    )


def hold_absent(check: AbsentCheck, ground: Ground) -> Proof:
    """Hold that something stands nowhere in some files."""
    paths = ground.matching(check.places)
    found: list[Found] = []
    defines = False
    for path in paths:
        word = (check.name or check.text or "").encode()
        if word not in ground.read(path) and not check.symbol:
            continue
        source = ground.file(path)
        if check.symbol and check.symbol not in source.symbols:
            continue
        defines = True
        before = len(found)
        if check.code is not None:
            places = find_code(check.code, source, check.symbol)
            if not places:
                check_readable(check.code, source)
            found += places
        else:
            find = find_names if check.name else find_words
            nodes = find(str(check.name or check.text), source, check.symbol)
            found += [found_at(node, source) for node in nodes]
        if check.symbol and len(found) == before:
            check_whole(check.symbol, source)
    if check.symbol and not defines:
        raise AnchorError(f"no file of {', '.join(check.places)} has {check.symbol}")
    if found:
        return verdict_on(ground, found, f"it stands in {_lines(found)}", holds=False)
    files = digest("\n".join(paths))[:16] if len(paths) > 1 else ""
    where = check.symbol or ", ".join(check.places)
    return Proof(
        "holds",
        f"nowhere in {where} ({len(paths)} files)"
        if len(paths) > 1
        else f"nowhere in {where}",
        ground.home_of(paths[0]),
        made_from={"the files looked through": files} if files else {},
    )


def hold_uses(check: UsesCheck, ground: Ground) -> Proof:
    """Hold the complete set of the uses of a name."""
    name = check.of.rpartition(".")[2]
    paths = ground.matching(check.places)
    found = [
        place
        for path in paths
        if name.encode() in ground.read(path)
        for use, place in find_uses(name, ground.file(path))
        if (use == check.how) or (check.how == "any" and use != "definition")
    ]
    if check.are is None:
        if check.count and not any(name.encode() in ground.read(p) for p in paths):
            raise AnchorError(f"nothing is called '{name}' in {_listed(check.places)}")
        rows = _listed(f"{each.span.path}:{each.span.first}" for each in found)
        said = f"{counted(len(found), 'place')}: {rows}" if found else "no place"
        holds = len(found) == check.count
        return verdict_on(ground, found, said, holds=holds, path=paths[0])
    names = dict.fromkeys(map(_named, found))
    more = [each for each in found if _named(each) not in check.are]
    less = [each for each in check.are if each not in names]
    gone, near = _gone(less, ground)
    if gone or (less and not more):
        use = "use" if check.how == "any" else check.how
        what = "; ".join(gone) or f"no {use} of '{name}' in {_listed(less)}"
        near += [f"{use}: {each}" for each in dict.fromkeys([*more, *found])]
        raise AnchorError(what, near[:MAX_SHOWN])
    said = _listed(names) or "no place"
    if more:
        extra = [f"{each} too" for each in dict.fromkeys(map(_named, more))]
        said = f"{_listed([*extra, *(f'not {n}' for n in less)])} ({_lines(more)})"
    return verdict_on(ground, found, said, holds=not more, path=paths[0])


def _gone(places: Iterable[str], ground: Ground) -> tuple[list[str], list[str]]:
    """Return which of some places are no more, and what may be meant now."""
    gone: list[str] = []
    near: list[str] = []
    for place in places:
        path, _, symbol = place.partition("::")
        try:
            ground.home_of(path)
            scopes_of(symbol or None, ground.file(path))
        except AnchorError as error:
            gone.append(error.reason)
            near += error.candidates
    return gone, near


def _named(found: Found) -> str:
    path = found.span.path
    return f"{path}::{found.symbol}" if found.symbol else path


def _lines(found: Iterable[Found]) -> str:
    return _listed(map(str, found))


# --- an order, a guard ----------------------------------------------------------------


def hold_order(check: OrderCheck, ground: Ground) -> Proof:
    """Hold that the first places of some patterns follow one another.

    In Python no two of them stand in branches that exclude each other.
    """
    source = ground.file(check.file)
    firsts = [first_code(code, source, check.symbol)[0] for code in check.code]
    if source.language.is_python:
        for one, other in combinations(firsts, 2):
            if never_both(one.node, other.node):
                said = f"never both: {one}; {other}"
                return verdict_on(ground, [one, other], said, holds=False)
    starts = [each.begin for each in firsts]
    return verdict_on(
        ground,
        firsts,
        " before ".join(map(str, sorted(firsts, key=lambda f: f.begin))),
        holds=all(a < b for a, b in pairwise(starts)),
    )


def hold_guard(check: GuardCheck, ground: Ground) -> Proof:
    """Hold that every place of a pattern stands under a condition."""
    source = ground.file(check.file)
    only_python(source, "a guard")
    places = first_code(check.code, source, check.symbol)
    if check.nth is not None:
        if check.nth > len(places):
            count = f"got {check.nth}, expected 1 to {len(places)}"
            raise AnchorError(f"{source.path}: nth is out of range: {count}")
        places = [places[check.nth - 1]]
    condition, truth = check.under or check.unless or "", check.under is not None
    try:
        tests = first_code(condition, source, check.symbol)
    except AnchorError as error:
        rows = [f"the code: {place}" for place in places[:MAX_NEAR]]
        raise AnchorError(error.reason, [*rows, *error.candidates]) from None
    wanted = {(test.node.start_byte, test.node.end_byte) for test in tests}
    scopes = scopes_of(check.symbol, source)
    guards, bare = [], []
    for place in places:
        node = place.node
        scope = next(s for s in scopes if s.start_byte <= node.start_byte < s.end_byte)
        facts = [
            fact
            for fact, is_true in facts_at(node, scope)
            if is_true == truth and (fact.start_byte, fact.end_byte) in wanted
        ]
        if facts:
            guards.append(found_at(facts[0], source))
        else:
            bare.append(place)
    word = "under" if truth else "unless"
    if bare:
        said = f"not {word} {condition!r}: {_lines(bare)}"
        return verdict_on(ground, bare, said, holds=False)
    pairs = zip(places, guards, strict=True)
    said = _listed(f"{place} {word} {guard}" for place, guard in pairs)
    return verdict_on(ground, [*places, *guards], said)

"""Which name was meant: whole, in any case, or as much of it as no other begins with.

One rule wherever a name is taken: ids, upstreams, minis, faults, topics, models, paths.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from readerkit.errors import ReaderkitError, WrongUseError

MAX_NAMED = 12
"""Names that a message lists; of more, those that are near."""


def choose(
    what: str,
    given: str,
    known: Iterable[str],
    *,
    aliases: Mapping[str, str] | None = None,
) -> str:
    """Return the one of the known names that was meant.

    ``aliases`` are other words for some of them.

    >>> choose("note", "TP-dgrad", ["tp-dgrad-overlap", "tp-row-forward"])
    'tp-dgrad-overlap'

    Raises:
        WrongUseError: none of them, or several; the message names those there are.
    """
    names = [*known]
    found = matches(given, names, aliases=aliases)
    if len(found) == 1:
        return found[0]
    if found:
        begun = [_begun(name, plain(given), aliases) for name in found]
        raise WrongUseError(
            f"which {what}? '{given}' begins {len(found)} of them: {_list(begun)}"
        )
    raise WrongUseError(
        f"unknown {what}: got '{given}', {expected(given, names, aliases)}"
    )


def choose_all(
    what: str, given: Iterable[str], known: Collection[str]
) -> tuple[str, ...]:
    """Return the names that were meant by several words.

    Raises:
        ReaderkitError: what is wrong with each word that means none, or several.
    """
    found, wrong = [], []
    for word in given:
        try:
            found.append(choose(what, word, known))
        except ReaderkitError as error:
            wrong.append(str(error))
    if wrong:
        raise WrongUseError("\n".join(wrong))
    return tuple(found)


def matches(
    given: str, known: Iterable[str], *, aliases: Mapping[str, str] | None = None
) -> list[str]:
    """Return the names that a word may stand for: one, if it is whole or an alias.

    A word that begins an alias begins what that is short for.
    """
    names, wanted = [*known], plain(given)
    if given in names:
        return [given]
    alias = (aliases or {}).get(wanted)
    if alias in names:
        return [alias]
    whole = [name for name in names if plain(name) == wanted]
    if whole or not wanted:
        return whole
    each = (aliases or {}).items()
    short = {name for alias, name in each if alias.startswith(wanted)}
    return [n for n in names if n in short or plain(n).startswith(wanted)]


def expected(
    given: str, known: Sequence[str], aliases: Mapping[str, str] | None = None
) -> str:
    """Return the end of a message about a name that is none of those known."""
    meant = hint(given, known)
    if len(known) > MAX_NAMED:
        return f"expected one of {len(known)}{meant or ': ' + _list(known)}"
    short = [f"{a} for {name}" for a, name in (aliases or {}).items() if name in known]
    also = f" ({', '.join(short)})" if short else ""
    return f"expected one of {', '.join(known)}{also}{meant}"


def hint(given: str, known: Iterable[str]) -> str:
    """Return the last words of a message about a name that is none: those near it.

    >>> hint("fsdq", ["fsdp", "zero"])
    ': did you mean fsdp?'
    """
    near = near_names(given, known)
    return f": {did_you_mean(*near)}" if near else ""


def did_you_mean(*names: str) -> str:
    """Return the question whether one of some names was meant; of none, nothing."""
    return f"did you mean {' or '.join(names)}?" if names else ""


def near_names(given: str, known: Iterable[str]) -> list[str]:
    """Return the names that look most like a word."""
    spelt = {plain(name): name for name in known}
    import difflib  # only where a name was mistyped

    found = difflib.get_close_matches(plain(given), spelt, n=3, cutoff=0.6)
    return [spelt[each] for each in found]


def plain(name: str) -> str:
    """Return a name without what people do not mean by it: case, and which dash."""
    return name.casefold().replace("_", "-")


def _begun(name: str, wanted: str, aliases: Mapping[str, str] | None) -> str:
    """Return a name, behind the alias of it that was begun where itself was not."""
    if plain(name).startswith(wanted):
        return name
    each = (aliases or {}).items()
    short = next(a for a, of in each if of == name and a.startswith(wanted))
    return f"{short} for {name}"


def _list(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ", ".join(names[:MAX_NAMED]) + more

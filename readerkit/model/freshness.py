"""What something derived was made from, and which part of that is another today.

Records, locked anchors, keys of a quiz, translations, results of labs and the site:
each keeps the names of its parts and a digest of each, and is asked in one place.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

from readerkit.model.language import Say, english

_Name = TypeVar("_Name", bound=str)
MadeFrom = Mapping[str, str]
"""By name: the digest of each part; of one that is short, itself. Empty is nothing."""
SHOWN_DIGITS = 12
MAX_TOLD = 3


class Change(NamedTuple):
    """A part that is not what it was; empty where it was not, or is no longer."""

    part: str
    was: str
    now: str

    def said(self, say: Say = english) -> str:
        """Return which part it is and how it changed, the same words for everything."""
        told = say("{part} has changed: was {was}, is {now}")
        if not self.was:
            told = say("{part} is new: {now}")
        elif not self.now:
            told = say("{part} is gone: was {was}")
        return told.format(part=self.part, was=_short(self.was), now=_short(self.now))

    def __str__(self) -> str:
        """Return the same in English."""
        return self.said()


def digest(data: bytes | str) -> str:
    """Return the digest of one part."""
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    return hashlib.sha256(raw).hexdigest()


def digest_all(parts: Mapping[_Name, str]) -> str:
    """Return one digest of all parts, for who asks only whether anything changed."""
    return digest("".join(f"{mark} {name}\n" for name, mark in sorted(parts.items())))


def changes(was: MadeFrom, now: MadeFrom) -> list[Change]:
    """Return each part that changed, vanished or was added, in the order of the parts.

    >>> changes({"a.py": "1", "b.py": "1"}, {"a.py": "2", "b.py": "1"})
    [Change(part='a.py', was='1', now='2')]
    """
    both = ((name, was.get(name, ""), now.get(name, "")) for name in {**was, **now})
    return [Change(*each) for each in both if each[1] != each[2]]


def outdated(was: MadeFrom, today: MadeFrom) -> list[Change]:
    """Return the same where ``today`` has more parts than anything was made from."""
    return changes(was, {name: today.get(name, "") for name in was})


def tell(found: Sequence[Change], say: Say = english) -> str:
    """Return the first changes in one line, and how many there are beside them."""
    more = f"; + {len(found) - MAX_TOLD}" if len(found) > MAX_TOLD else ""
    return "; ".join(each.said(say) for each in found[:MAX_TOLD]) + more


def _short(mark: str) -> str:
    return mark[:SHOWN_DIGITS] if re.fullmatch("[0-9a-f]{16,}", mark) else mark

"""The texts of an entry in another language, and of which English they say they are."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


def english_stamp(texts: Iterable[str]) -> str:
    """Return a short name of English texts, by which a translation says it is theirs.

    White space does not count. It begins with ``en-``, so that no reader of YAML takes
    eight digits for a number.
    """
    words = "\0".join(" ".join(text.split()) for text in texts)
    return f"en-{hashlib.sha256(words.encode()).hexdigest()[:8]}"


@dataclass(frozen=True, slots=True)
class Translation:
    """One entry of a sidecar; without texts, where the sidecar has none of it."""

    texts: Mapping[str, str] = field(default_factory=dict)
    """By the field that they are instead of."""
    of: str = ""
    """The stamp of the English that was translated; empty where it says none."""

    @classmethod
    def parse(cls, entry: Mapping[str, str]) -> Translation:
        """Return the translation that an entry of a valid sidecar holds."""
        texts = {name: text for name, text in entry.items() if name != "of"}
        return cls(texts, entry.get("of", ""))

    def is_outdated(self, stamp: str) -> bool:
        """Tell whether the English, of which this is the stamp, changed since."""
        return self.of not in ("", stamp)

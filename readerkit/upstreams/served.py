"""What a source hands over."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from readerkit.upstreams.upstream import Upstream

MAX_MEMBER_BYTES = 4_000_000
"""No source file comes near it; an archive member that claims more is refused."""


@dataclass(frozen=True, slots=True)
class Served:
    """Unverified bytes, and where they came from."""

    origin: str
    """In words: "wheel megatron_core-0.16.1-….whl from the package index"."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    licence: bytes | None = None
    """The licence text, where the source carries it."""
    proves_commit: bool = False
    """Whether the source itself ties the bytes to the pinned commit."""


class Source(Protocol):
    """One way to the bytes of an upstream."""

    def __call__(self, upstream: Upstream, paths: Collection[str] | None) -> Served:
        """Return the files at ``paths``, or all included ones when None.

        Raises:
            SourceError: it cannot serve this upstream here; the message says why.
        """
        ...

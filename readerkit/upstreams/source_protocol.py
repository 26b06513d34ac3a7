"""What a source hands over."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from readerkit.model.git_names import TreePath
from readerkit.upstreams.upstream import Upstream

MAX_MEMBER_BYTES = 4_000_000
"""No source file comes near it; an archive member that claims more is refused."""


@dataclass(frozen=True, slots=True)
class Served:
    """Unverified bytes, and where they came from."""

    origin: str
    """In words: "package megatron-core 0.16.1 (wheel)"."""
    files: Mapping[TreePath, bytes] = field(default_factory=dict)
    links: tuple[TreePath, ...] = ()
    """Included paths that are left out because they are symbolic links."""
    licence: bytes | None = None
    """The licence text, where the source carries it."""
    proves_commit: bool = False
    """Whether the source itself ties the bytes to the pinned commit."""
    public: str = ""
    """The origin without a path of this machine; empty where it has none."""


class Source(Protocol):
    """One way to the bytes of an upstream."""

    def __call__(
        self, upstream: Upstream, paths: Collection[TreePath] | None
    ) -> Served:
        """Return the files at ``paths``, or all included ones when None.

        Raises:
            SourceError: it cannot serve this upstream here; the message says why.
        """
        ...


def is_a_link(path: str, of: object, link: str = "") -> str:
    """Return why a path is not served that is a symbolic link, or behind one."""
    behind = f"is behind {link}, a link" if link and link != path else "is a link"
    return f"{path} of {of} {behind}, and links are never followed"

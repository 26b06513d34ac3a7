"""What is read: a public code base at one commit, and the paths of it that matter."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from readerkit.anchor import Span
from readerkit.git_names import NO_COMMIT, CommitId, TreePath, parse_path


@dataclass(frozen=True, slots=True)
class Package:
    """The release artifact with the same files as the pinned commit."""

    name: str
    version: str
    wheel_python: str | None = None
    """Interpreter tag that pip is asked for; None means an sdist."""
    wheel_platform: str | None = None
    """Platform tag that pip is asked for, whatever runs here."""


@dataclass(frozen=True, slots=True)
class Licence:
    """Whose text it is and under which terms."""

    spdx: str
    path: TreePath
    """Of the licence text inside the repository."""
    holder: str


@dataclass(frozen=True, slots=True)
class Upstream:
    """A code base pinned at one full commit id, or a folder beside the book."""

    name: str
    title: str
    include: tuple[str, ...]
    """Globs from the repository's root; ``**`` stands for any number of folders."""
    url: str = ""
    tag: str = ""
    commit: CommitId = NO_COMMIT
    """Full id; empty for a folder, whose files are read as they are."""
    licence: Licence | None = None
    package: Package | None = None
    installed: str = ""
    """The import name of a package that carries the same files."""
    folder: str = ""

    @classmethod
    def parse(cls, value: Mapping[str, Any]) -> Upstream:
        """Return the upstream that an entry of ``upstreams.yaml`` describes.

        Raises:
            ValueError: a licence or a glob that could lead out of the upstream.
        """
        given = dict(value)
        given["include"] = tuple(map(_parse_glob, given["include"]))
        if "licence" in given:
            terms = given["licence"]
            given["licence"] = Licence(**{**terms, "path": parse_path(terms["path"])})
        if "package" in given:
            package = dict(given["package"])
            wheel = package.pop("wheel", {})
            given["package"] = Package(
                **package,
                wheel_python=wheel.get("python"),
                wheel_platform=wheel.get("platform"),
            )
        return cls(**given)

    @property
    def is_pinned(self) -> bool:
        """Whether bytes are held against a lock."""
        return bool(self.commit)

    def includes(self, path: str) -> bool:
        """Tell whether ``path`` is one that matters."""
        if ".." in path.split("/"):
            return False
        return any(_glob(pattern).fullmatch(path) for pattern in self.include)

    def permalink(self, span: Span) -> str:
        """Return these lines' address at the pinned commit, or an empty string."""
        if not self.url:
            return ""
        lines = f"#L{span.first}-L{span.last}"
        return f"{self.url}/blob/{self.commit}/{span.path}{lines}"


def _parse_glob(pattern: str) -> str:
    """Return a glob that names no folder but of its upstream."""
    parse_path(re.sub(r"[*?]+", "x", pattern))
    return pattern


@lru_cache
def _glob(pattern: str) -> re.Pattern[str]:
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    wild = {"**/": "(?:[^/]+/)*", "**": "(?s:.*)", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(wild.get(part, re.escape(part)) for part in parts))

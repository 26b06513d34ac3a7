"""What is read: a public code base at one commit, and the paths of it that matter."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Annotated

from readerkit.model.anchor import Span
from readerkit.model.base import (
    SOME,
    Model,
    Problem,
    Text,
    UpstreamName,
    pattern,
    rules,
)
from readerkit.model.git_names import NO_COMMIT, CommitId, TreePath, parse_path
from readerkit.model.language import Told
from readerkit.wording.next_command import typed

# What pip is given: never an option, an address or a folder that it would build.
PipWord = Annotated[str, pattern("^[A-Za-z0-9][A-Za-z0-9._+!-]*$")]
# Git is asked for refs/tags/TAG, in which it takes * ? [ for any letters.
Tag = Annotated[
    str,
    pattern(
        "^[A-Za-z0-9_]([A-Za-z0-9._+/-]{0,198}[A-Za-z0-9_+-])?$",
        "the name of a tag, such as v1.0",
    ),
]
Folder = Annotated[
    str,
    pattern(
        "^[A-Za-z0-9_-]+$",
        "the name of a folder beside annotations: letters, digits, - and _",
    ),
]


class Wheel(Model, frozen=True):
    """Tags that pip is asked for, whatever runs here."""

    python: PipWord
    platform: PipWord


class Package(Model, frozen=True):
    """The release artifact with the same files as the pinned commit."""

    name: PipWord
    version: PipWord
    wheel: Wheel | None = None
    """None means an sdist."""


class Licence(Model, frozen=True):
    """Whose text it is and under which terms."""

    spdx: Text
    path: TreePath
    """Of the licence text inside the repository."""
    holder: Text


class Upstream(Model, frozen=True):
    """A code base: pinned, a folder beside the book, or the repository it stands in.

    Pinned is a full commit id, or the release of a package.
    """

    name: UpstreamName
    title: Text
    include: Annotated[tuple[Text, ...], SOME]
    """Globs from the repository's root; ``**`` stands for any number of folders."""
    exclude: Annotated[tuple[Text, ...], SOME] = ()
    """Globs of what is left out of that: tests, what a program wrote."""
    url: Annotated[str, pattern('^(https|ssh|http|git|file)://[^\\s"<>]+$')] = ""
    tag: Tag = ""
    commit: Annotated[
        CommitId, pattern("^[0-9a-f]{40}$", "40 digits of 0-9 and a-f")
    ] = NO_COMMIT
    """Full id; empty for a folder, whose files are read as they are."""
    licence: Licence | None = None
    package: Package | None = None
    installed: Annotated[str, pattern("^[A-Za-z_][A-Za-z0-9_]*$")] = ""
    """The import name of a package that carries the same files."""
    folder: Folder = ""
    worktree: bool = False
    """Whether it is the repository that the book stands in, as its files are now."""
    branch: Tag = ""
    """A branch of that repository, whose files are read in place of those."""
    optional: bool = False
    """Whether a book goes without it: only ``fetch`` brings it, and where it was not
    brought, what stands in it is told as not read, and nothing fails."""

    def problems(self) -> Iterator[Problem]:
        """Yield each glob and licence that could lead out of the upstream or folder."""
        every = (*self.include, *self.exclude)
        globs = [re.sub(r"[*?]+", "x", glob) for glob in every]
        for path in [*globs, *([self.licence.path] if self.licence else [])]:
            try:
                parse_path(path)
            except ValueError as error:
                yield f"{self.name}: {error}", "", ""
        for glob in self.include if self.folder else ():
            if not glob.startswith(f"{self.folder}/"):
                what = f"{self.name}: 'include' leads beside its folder"
                yield what, repr(glob), repr(f"{self.folder}/{glob.lstrip('/')}")

        kinds = {
            "commit": self.commit,
            "folder": self.folder,
            "worktree": self.worktree,
            "branch": self.branch,
        }
        if len(given := [kind for kind, value in kinds.items() if value]) > 1:
            what = f"{self.name}: 'commit', 'folder', 'worktree' and 'branch' exclude"
            yield f"{what} each other", " and ".join(given), "one of them"

    @property
    def is_pinned(self) -> bool:
        """Whether bytes are held against a lock."""
        is_release = bool(self.package) and not (self.folder or self.is_living)
        return bool(self.commit) or is_release

    @property
    def is_living(self) -> bool:
        """Whether it changes under its notes: what these were read against is locked.

        Lines that only move are followed; code that changed is what a check tells.
        """
        return self.worktree or bool(self.branch)

    @property
    def is_locked(self) -> bool:
        """Whether a lock says what its notes were read against."""
        return self.is_pinned or self.is_living

    @property
    def pin(self) -> str:
        """The tag, where there is one, and the commit; else the release, the branch."""
        if self.commit:
            return ", ".join(filter(None, (self.tag, f"commit {self.commit[:12]}")))
        if self.is_pinned and self.package:
            return f"{self.package.name} {self.package.version}"
        return f"branch {self.branch}" if self.branch else "the work tree"

    @property
    def release(self) -> str:
        """The version of the package that is pinned where no commit is."""
        return self.package.version if self.package and not self.commit else ""

    @property
    def pin_whole(self) -> str:
        """The pin as a lock has it: the full commit, or the release."""
        return f"commit {self.commit}" if self.commit else self.pin

    @property
    def not_fetched(self) -> Told:
        """Why it is not read where only ``fetch`` brings it, and what to type."""
        named = {
            "title": self.title,
            "by_git": typed("fetch", self.name),
            "own": typed("fetch", self.name, "--source", "PATH"),
            "version": self.tag or self.commit[:12] or self.pin,
        }
        if self.package:
            return Told("{title} was not fetched: {by_git}", **named)
        return Told(
            "{title} was not fetched, and no package carries it: {by_git} brings it "
            "by git, {own} from a checkout of {version}",
            **named,
        )

    def includes(self, path: str) -> bool:
        """Tell whether ``path`` is one that matters."""
        if ".." in path.split("/"):
            return False
        return _fits(path, self.include) and not _fits(path, self.exclude)

    def permalink(self, span: Span) -> str:
        """Return these lines' address at the pinned commit, or an empty string."""
        if not (self.url and self.commit):
            return ""
        lines = f"#L{span.first}-L{span.last}"
        return f"{self.url}/blob/{self.commit}/{span.path}{lines}"


_NO_PIN = [{"required": [key]} for key in ("folder", "worktree", "branch", "package")]
PINNED_OR_FOLDER = rules(
    # What names a commit has to say whose text it is.
    {
        "if": {"anyOf": [{"required": ["commit"]}, {"not": {"anyOf": _NO_PIN}}]},
        "then": {"required": ["url", "commit", "licence"]},
    }
)


def _fits(path: str, globs: tuple[str, ...]) -> bool:
    return any(matching(glob).fullmatch(path) for glob in globs)


@lru_cache
def matching(pattern: str) -> re.Pattern[str]:
    """Return what the paths fit that a glob stands for."""
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    wild = {"**/": "(?:[^/]+/)*", "**": "(?s:.*)", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(wild.get(part, re.escape(part)) for part in parts))

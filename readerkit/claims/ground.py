"""What claims are held against: the files of every upstream, records, programs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from readerkit.anchors import SourceFile
from readerkit.content.claims import Claim
from readerkit.content.resolved_notes import Sources
from readerkit.errors import AnchorError, ReaderkitError
from readerkit.evidence.experiment_output import Output
from readerkit.evidence.record import Record
from readerkit.model.freshness import Change
from readerkit.model.git_names import TreePath
from readerkit.upstreams import Upstream
from readerkit.upstreams.upstream import matching
from readerkit.wording.meant_name import did_you_mean, near_names


class NotAtHand(ReaderkitError):
    """Something that a claim speaks of cannot be looked at here."""


@dataclass(slots=True, eq=False)
class _Opened:
    """An upstream whose files were asked for: they, or why there are none."""

    sources: Sources | None
    why_not: str = ""


@dataclass(eq=False)
class Ground:
    """The files, records and programs; each is read once, and only if asked for."""

    upstreams: Mapping[str, Upstream]
    paths: Mapping[str, Collection[TreePath]]
    """By upstream: every file that it includes."""
    open: Callable[[Upstream], Sources]
    """Returns the files of an upstream; raises where they cannot be had."""
    record: Callable[[str], Record | None]
    """Returns a shipped record."""
    program: Callable[[str], str | None]
    """Returns the text of an experiment."""
    output: Callable[[str], tuple[Output, Sequence[Change]] | None] = lambda _: None
    """Returns what it printed, if that is kept, and what has changed since."""
    _opened: dict[str, _Opened] = field(default_factory=dict)
    _bytes: dict[TreePath, bytes] = field(default_factory=dict)

    @cached_property
    def _home(self) -> dict[TreePath, str]:
        rows = [(p, name) for name, paths in self.paths.items() for p in paths]
        return dict(reversed(rows))

    def home_of(self, path: str) -> str:
        """Return the upstream that includes a file.

        Raises:
            AnchorError: none does.
        """
        try:
            return self._home[TreePath(path)]
        except KeyError:
            raise AnchorError(
                f"no upstream includes a file '{path}'",
                map(did_you_mean, near_names(path, self._home)),
            ) from None

    def homes_of(self, claim: Claim) -> set[str]:
        """Return the upstreams whose files a claim names; none of what is no file."""
        check = claim.check
        names = getattr(check, "names", {}).values()
        files = [getattr(each, "file", None) for each in (check, *names)]
        found = set()
        for glob in filter(None, (*files, *getattr(check, "places", ()))):
            with contextlib.suppress(AnchorError):
                found |= {self.home_of(path) for path in self.matching([glob])}
        return found

    def matching(self, globs: Iterable[str]) -> list[TreePath]:
        """Return every file that these globs stand for.

        Raises:
            AnchorError: a glob that stands for none.
        """
        found: dict[TreePath, None] = {}
        for glob in globs:
            if "*" not in glob and "?" not in glob:
                self.home_of(glob)
                found[TreePath(glob)] = None
                continue
            here = [path for path in self._home if matching(glob).fullmatch(path)]
            if not here:
                raise AnchorError(f"no upstream includes a file like '{glob}'")
            found |= dict.fromkeys(sorted(here))
        return list(found)

    def beside(self, paths: Iterable[str]) -> list[TreePath]:
        """Return the other files of the upstreams, or first folders, of some."""
        given = [*paths]
        homes = {self._home.get(TreePath(path)) for path in given} - {None}
        tops = tuple({path.partition("/")[0] + "/" for path in given})
        return [
            path
            for path, home in self._home.items()
            if path not in given and (home in homes or path.startswith(tops))
        ]

    def read(self, path: TreePath) -> bytes:
        """Return the verified bytes of a file.

        Raises:
            NotAtHand: its upstream's source cannot be had here.
        """
        if path not in self._bytes:
            sources = self._sources(self.home_of(path))
            try:
                self._bytes[path] = sources.read(path)
            except ReaderkitError as error:
                name = sources.upstream.name
                self._opened[name] = _Opened(None, _why_not(name, error))
                self._sources(name)
        return self._bytes[path]

    def file(self, path: str) -> SourceFile:
        """Return a parsed file.

        Raises:
            AnchorError: a file that no upstream includes.
            NotAtHand: its upstream's source cannot be had here.
        """
        home = self.home_of(path)
        self.read(TreePath(path))
        return self._sources(home).file(TreePath(path))

    def sources(self, path: str) -> Sources:
        """Return the files beside one, itself among them; see ``file``."""
        self.read(TreePath(path))
        return self._sources(self.home_of(path))

    def _sources(self, name: str) -> Sources:
        if name not in self._opened:
            try:
                opened = self.open(self.upstreams[name])
                why = str(opened.upstream.not_fetched) if opened.is_absent else ""
                self._opened[name] = _Opened(None if why else opened, why)
            except ReaderkitError as error:
                self._opened[name] = _Opened(None, _why_not(name, error))
        known = self._opened[name]
        if known.sources is None:
            raise NotAtHand(known.why_not)
        return known.sources


def _why_not(upstream: str, error: ReaderkitError) -> str:
    return f"{upstream} is not at hand: " + str(error).partition("\n")[0]

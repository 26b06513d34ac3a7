"""Claims that follow their code: what each names, where that surely is now.

A claim is written anew where it can be held there: by the same check, on the same
definitions and patterns under the names that they have now. One of the order or the
guards in a definition goes with it in any case.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from msgspec import convert, to_builtins
from msgspec.structs import replace

from readerkit.anchors import SourceFile
from readerkit.anchors.code_search import find_code, find_uses
from readerkit.anchors.settings import find_default
from readerkit.app.drift_renames import Moves, Renames, with_names
from readerkit.claims.check_dispatch import hold
from readerkit.claims.ground import Ground
from readerkit.claims.proof import Proof, Sentence
from readerkit.content.claims import Claim
from readerkit.errors import AnchorError
from readerkit.model.anchor import Anchor, Span
from readerkit.model.git_names import TreePath
from readerkit.upstreams.upstream import matching

Raw = dict[str, Any]
_PLACED = {"order", "guard"}
"""They go with the definition that they are in: what is found no more is to be looked
for there, and not where nothing is left."""
_TOLD = {"default", "guard", "order", "absent"}
"""What is false at a definition that went elsewhere is said of it all the same."""


@dataclass(frozen=True, slots=True)
class MovedClaim:
    """A claim whose code is elsewhere or has other names, and the same claim there."""

    was: Sentence
    sentence: Sentence
    proof: Proof
    """What holding it there gives."""

    @property
    def checks(self) -> tuple[Raw, Raw]:
        """The check as it is written, and as it is to be."""
        return to_builtins(self.was.claim.check), to_builtins(self.sentence.claim.check)

    def to_plain(self) -> dict[str, Any]:
        """Return it for a program."""
        was, now = self.checks
        names = {"id": self.was.entry, "says": self.was.claim.says}
        return {**names, "check": self.was.claim.kind, "was": was, "now": now}


class ClaimMover:
    """Rewrites claims for another revision."""

    def __init__(self, moves: Moves, ground: Ground) -> None:
        self._moves, self._ground = moves, ground

    def move(self, sentence: Sentence, proof: Proof) -> MovedClaim | None:
        """Return a claim that does not hold as it is, as it is now; None if unsure.

        ``proof`` is what holding it as it is gave there.
        """
        claim = sentence.claim
        is_wide = claim.absent is not None and claim.absent.symbol is None
        if (
            proof.state != "lost"
            and (proof.state, claim.kind) != ("false", "uses")
            # Nothing is found in what is left of a file, either.
            and not (is_wide and proof.state == "holds")
        ):
            return None
        raw = to_builtins(claim.check)
        lost: MovedClaim | None = None
        try:
            for new in self._rewritten(claim, raw):
                if new == raw:
                    continue
                check = convert(new, type(claim.check))
                other = replace(claim, **{claim.kind: check})
                moved = dataclasses.replace(sentence, claim=other)
                if found := self._hold(other):
                    return MovedClaim(sentence, moved, found)
                if lost is None and claim.kind in _PLACED and "symbol" in raw:
                    lost = MovedClaim(sentence, moved, hold(other, self._ground))
        except AnchorError:
            return lost
        return lost

    def _hold(self, claim: Claim) -> Proof | None:
        if claim.run is not None:
            # The record is of the old code, and says nothing of this until it is new.
            return hold(claim, self._ground)
        proof = hold(claim, self._ground)
        is_told = proof.state == "false" and claim.kind in _TOLD
        return proof if proof.state == "holds" or is_told else None

    def _rewritten(self, claim: Claim, raw: Raw) -> Iterator[Raw]:
        """Yield what a check may be now."""
        if claim.stands is not None:
            anchor = self._moves.anchor(claim.stands)
            if anchor:
                yield anchor.to_yaml()
        elif claim.run is not None:
            yield from self._run(claim.run.anchor, raw)
        elif claim.default is not None:
            yield self._default(raw)
        elif claim.value is not None:
            names = {
                name: self._default(each) if isinstance(each, Mapping) else each
                for name, each in raw.get("with", {}).items()
            }
            yield {**raw, "with": names}
        elif claim.absent is not None:
            yield self._absent(raw)
        elif claim.uses is not None:
            yield from self._uses(raw)
        elif claim.order is not None or claim.guard is not None:
            yield from self._placed(raw)

    # --- one kind each ----------------------------------------------------------------

    def _run(self, anchor: Anchor | None, raw: Raw) -> Iterator[Raw]:
        if anchor is None:
            return
        try:
            self._moves.after.resolve(anchor)
        except AnchorError:
            if moved := self._moves.anchor(anchor):
                yield {**{k: v for k, v in raw.items() if k not in anchor.to_yaml()},
                       **moved.to_yaml()}  # fmt: skip

    def _default(self, raw: Mapping[str, Any]) -> Raw:
        """Return where a default is written now.

        Raises:
            AnchorError: it was nowhere, or is nowhere surely.
        """
        path, name = TreePath(raw["file"]), raw["of"]
        old, _ = find_default(name, self._moves.before.file(path))
        owner, _, last = name.rpartition(".")
        to = self._moves.place(old.span)
        names = self._moves.renames(old.span, to) if to else {}
        if name.startswith("-") or not owner:
            new = name if name.startswith("-") else names.get(name, name)
            return {**raw, "file": to.path if to else self._new_home(raw), "of": new}
        home = self._moves.definition(path, owner)
        if home is None:
            raise AnchorError(f"{owner} is nowhere surely")
        return {**raw, "file": home[0], "of": f"{home[1]}.{names.get(last, last)}"}

    def _new_home(self, raw: Mapping[str, Any]) -> TreePath:
        """Return the one file that has a constant or an option, and did not have it.

        Raises:
            AnchorError: none, or several.
        """
        moves, name = self._moves, raw["of"]
        files = moves.files(raw["file"])
        if not files or raw["file"] in files:
            files = [
                p for p in moves.after.paths if name.encode() in moves.after.read(p)
            ]
        was = [path for path in files if path in moves.before.paths]
        had = [path for path in was if _has_default(name, moves.before.file(path))]
        found = [
            path
            for path in files
            if path not in had and _has_default(name, moves.after.file(path))
        ]
        if len(found) != 1:
            raise AnchorError(f"{name} is nowhere surely")
        return found[0]

    def _absent(self, raw: Raw) -> Raw:
        places, symbol = raw["in"], raw.get("symbol")
        if symbol is None:
            files = self._files(places)
            went = self._moves.went(_matching(places, self._moves.before.paths))
            files += [path for path in went if not _matching(files, [path])]
            return {**raw, "in": files} if files != [*places] else raw
        before = self._moves.before
        homes: dict[TreePath, tuple[TreePath, str]] = {}
        for path in _matching(places, before.paths):
            if symbol in before.file(path).symbols:
                home = self._moves.definition(path, symbol)
                if home is None:
                    raise AnchorError(f"{symbol} is nowhere surely")
                homes[path] = home
        names = {name for _, name in homes.values()}
        if len(names) != 1:
            raise AnchorError(f"{symbol} is nowhere surely")
        files = [homes[path][0] if path in homes else path for path in places]
        files += [path for path, _ in homes.values() if not _matching(files, [path])]
        files = self._files(list(dict.fromkeys(files)))
        return {**raw, "in": files, "symbol": names.pop()}

    def _uses(self, raw: Raw) -> Iterator[Raw]:
        moves, name = self._moves, raw["of"].rpartition(".")[2]
        files: list[str] = self._files(raw["in"])
        names: dict[str, str] = {}
        for path in _matching(raw["in"], moves.before.paths):
            if name.encode() not in moves.before.read(path):
                continue
            spans = [
                found.span for _, found in find_uses(name, moves.before.file(path))
            ]
            moves.look(spans)
            for span in spans:
                if to := moves.place(span):
                    files += [] if _matching(files, [to.path]) else [to.path]
                    names |= moves.renames(span, to)
        new = {**raw, "in": files}
        if "are" in raw:
            new["are"] = [self._named_place(place) for place in raw["are"]]
        yield new
        if other := names.get(name):
            yield {**new, "of": raw["of"].removesuffix(name) + other}

    def _named_place(self, place: str) -> str:
        path, _, symbol = place.partition("::")
        if not symbol:
            [file] = self._files([path]) or [path]
            return file
        home = self._moves.definition(TreePath(path), symbol)
        if home is None:
            raise AnchorError(f"{symbol} is nowhere surely")
        return "::".join(home)

    def _placed(self, raw: Raw) -> Iterator[Raw]:
        """Yield an order or a guard where its definition or its patterns are now."""
        path, symbol = TreePath(raw["file"]), raw.get("symbol")
        spans = list(self._spans(raw))
        self._moves.look(spans)
        places = [(span, self._moves.place(span)) for span in spans]
        files = {to.path for _, to in places if to}
        if symbol:
            home = self._moves.definition(path, symbol)
            if home is None:
                raise AnchorError(f"{symbol} is nowhere surely")
            new = {**raw, "file": home[0], "symbol": home[1]}
        elif len(files) == 1:
            new = {**raw, "file": files.pop()}
        else:
            raise AnchorError(f"{path} is nowhere surely")
        yield new
        names: Renames = {}
        for span, to in places:
            names = {**names, **(self._moves.renames(span, to) if to else {})}
        if names:
            yield with_names(new, names)

    def _spans(self, raw: Raw) -> Iterator[Span]:
        """Yield the lines that the patterns of a check were on."""
        source = self._moves.before.file(TreePath(raw["file"]))
        codes = raw["code"] if isinstance(raw["code"], list | tuple) else [raw["code"]]
        others = [raw[key] for key in ("under", "unless") if key in raw]
        for code in [*codes, *others]:
            for found in find_code(code, source, raw.get("symbol")):
                yield found.span

    def _files(self, places: list[str]) -> list[str]:
        """Return files and globs with those that are gone as what took their place.

        Raises:
            AnchorError: one that is nowhere surely.
        """
        found: list[str] = []
        for place in places:
            if _matching([place], self._moves.after.paths):
                found.append(place)
            elif files := [
                new
                for path in _matching([place], self._moves.before.paths)
                for new in self._moves.files(path)
            ]:
                found += files
            else:
                raise AnchorError(f"{place} is nowhere surely")
        return list(dict.fromkeys(found))


def _has_default(name: str, source: SourceFile) -> bool:
    try:
        find_default(name, source)
    except AnchorError:
        return False
    return source.language.is_python


def _matching(globs: Any, paths: Any) -> list[TreePath]:
    patterns = [matching(glob) for glob in globs]
    return [path for path in sorted(paths) if any(p.fullmatch(path) for p in patterns)]

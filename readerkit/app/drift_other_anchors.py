"""Anchors outside of notes and claims: of questions, diagrams and faults."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import MsgspecError

from readerkit.app.drift_renames import Moves
from readerkit.app.folders import read_at_most
from readerkit.app.library import Library
from readerkit.app.yaml_edits import values
from readerkit.errors import AnchorError
from readerkit.model.anchor import Anchor

_FOLDERS = ("quizzes", "site/pages", "mini_impls/faults")
_KEYS = set(Anchor.__struct_encode_fields__)


@dataclass(frozen=True, slots=True)
class MovedAnchor:
    """An anchor that names nothing, or another place, in the other revision."""

    path: Path
    line: int
    was: Anchor
    anchor: Anchor | None
    """None: a person has to look."""
    problem: str

    def to_plain(self) -> dict[str, Any]:
        """Return it for a program."""
        return {
            "file": str(self.path),
            "line": self.line,
            "was": self.was.to_yaml(),
            "anchor": self.anchor.to_yaml() if self.anchor else None,
            "reason": self.problem,
        }


def drifted_anchors(library: Library, moves: Moves) -> list[MovedAnchor]:
    """Return the anchors of other files of a book that name no more what they did."""
    found = []
    for folder in _FOLDERS:
        for path in sorted((library.root / folder).rglob("*.yaml")):
            if path.name.endswith(".es.yaml"):
                continue
            text = read_at_most(path, library.root).decode("utf-8", "replace")
            for line, anchor in anchors_in(text):
                if anchor.file not in moves.before.paths:
                    continue
                if problem := _problem(anchor, moves):
                    now = moves.anchor(anchor)
                    found.append(MovedAnchor(path, line, anchor, now, problem))
    return found


def _problem(anchor: Anchor, moves: Moves) -> str:
    """Return why an anchor does not name in the other revision what it did; or ''."""
    try:
        moves.after.resolve(anchor)
    except AnchorError as error:
        return error.reason
    return "it picks another of equal places" if moves.picks_another(anchor) else ""


def anchors_in(text: str) -> Iterator[tuple[int, Anchor]]:
    """Yield every anchor of a file with the line where it begins; none of claims."""
    for node, anchor in anchor_nodes(text):
        yield node.start_mark.line + 1, anchor


def anchor_nodes(text: str) -> Iterator[tuple[Any, Anchor]]:
    """Yield every mapping that is an anchor, and that anchor; none of claims."""
    import yaml

    if "file:" not in text:
        return
    todo = [yaml.compose(text, Loader=yaml.SafeLoader)]
    while todo:
        node = todo.pop()
        if isinstance(node, yaml.SequenceNode):
            todo += node.value
        own = values(node) if node is not None else {}
        if "says" in own:
            continue
        if "file" in own and {*own} - {"upstream"} <= _KEYS:
            raw = yaml.SafeLoader("").construct_document(node)
            raw.pop("upstream", None)
            try:
                yield node, Anchor.parse(raw)
            except (AnchorError, MsgspecError):
                continue
        else:
            todo += own.values()

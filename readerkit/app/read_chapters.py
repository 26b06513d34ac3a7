"""Reads the texts written in Markdown, each with the claims that stand beside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from readerkit.app.folders import read_at_most
from readerkit.content.chapters import CHAPTER, ChapterText, LabScript
from readerkit.errors import ContentError
from readerkit.model.language import SPANISH

CHAPTERS, LABS = (Path("site", "pages", kind) for kind in ("chapters", "labs"))


def read_chapters(root: Path) -> Iterator[ChapterText]:
    """Yield the chapters of a book in their order.

    Raises:
        ContentError: claims beside one that are none, or that it does not say.
    """
    for path in sorted((root / CHAPTERS).glob("*.md")):
        if not path.name.endswith(f".{SPANISH}.md"):
            yield _read(path, path.stem.partition("-")[2] or path.stem, root)


def read_labs(root: Path) -> Iterator[LabScript]:
    """Yield the labs of a book in their order.

    Raises:
        ContentError: the same.
    """
    for path in sorted((root / LABS).glob("*.md")):
        if "." in path.stem:  # a solution, or a translation
            continue
        name = f"lab-{path.stem}"
        solution = path.with_suffix(".solution.md")
        task = path.with_suffix(".task.yaml")
        yield LabScript(
            path.stem,
            _read(path, name, root),
            _read(solution, f"{name}-solution", root) if solution.exists() else None,
            read_text(task, root) if task.exists() else "",
        )


def _read(path: Path, name: str, root: Path) -> ChapterText:
    """Return a text, its Spanish, if there is one, and its claims."""
    spanish, claims = (path.with_suffix(end) for end in (f".{SPANISH}.md", ".yaml"))
    script = ChapterText(
        name=name,
        file=path.relative_to(root).as_posix(),
        text=read_text(path, root),
        spanish=read_text(spanish, root) if spanish.exists() else "",
    )
    if not claims.exists():
        return script
    file = claims.relative_to(root).as_posix()
    return _claimed(script, read_at_most(claims, root), file)


@lru_cache(maxsize=64)  # a server reads them anew after each change
def _claimed(script: ChapterText, data: bytes, file: str) -> ChapterText:
    from readerkit.content.validation import (
        read_document,  # YAML, for what may be in no text
    )

    document = read_document(data, file, CHAPTER)
    if document.faults:
        raise ContentError(document.faults)
    claimed = replace(script, claims=document.value.claims)
    if faults := [*claimed.claim_faults()]:
        raise ContentError(faults)
    return claimed


def read_text(path: Path, root: Path) -> str:
    """Return the text of a file of a book."""
    from readerkit.content.strict_yaml import decode

    return decode(read_at_most(path, root), path.relative_to(root).as_posix())

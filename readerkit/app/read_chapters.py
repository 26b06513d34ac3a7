"""Reads the texts written in Markdown, and the claims that stand beside a chapter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from readerkit.app.folders import read_at_most
from readerkit.content.chapters import CHAPTER, ChapterText
from readerkit.errors import ContentError
from readerkit.model.language import SPANISH

CHAPTERS = Path("site", "pages", "chapters")


def read_chapters(root: Path) -> Iterator[ChapterText]:
    """Yield the chapters of a book in their order.

    Raises:
        ContentError: claims beside one that are none, or that it does not say.
    """
    for path in sorted((root / CHAPTERS).glob("*.md")):
        if not path.name.endswith(f".{SPANISH}.md"):
            script = read_chapter(path, path.stem.partition("-")[2] or path.stem, root)
            yield _with_claims(script, path.with_suffix(".yaml"), root)


def _with_claims(script: ChapterText, path: Path, root: Path) -> ChapterText:
    if not path.exists():
        return script
    from readerkit.content.validation import (
        read_document,  # YAML, for what may be in no text
    )

    file = path.relative_to(root).as_posix()
    document = read_document(read_at_most(path, root), file, CHAPTER)
    if document.faults:
        raise ContentError(document.faults)
    claimed = replace(script, claims=document.value.claims)
    if faults := [*claimed.claim_faults()]:
        raise ContentError(faults)
    return claimed


def read_chapter(path: Path, name: str, root: Path) -> ChapterText:
    """Return a text and its Spanish, if there is one."""
    spanish = path.with_suffix(f".{SPANISH}.md")
    return ChapterText(
        name=name,
        file=path.relative_to(root).as_posix(),
        text=read_text(path, root),
        spanish=read_text(spanish, root) if spanish.exists() else "",
    )


def read_text(path: Path, root: Path) -> str:
    """Return the text of a file of a book."""
    from readerkit.content.strict_yaml import decode

    return decode(read_at_most(path, root), path.relative_to(root).as_posix())

"""Reads the texts written in Markdown, and the claims that stand beside a chapter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
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
    file = path.relative_to(root).as_posix()
    return _claimed(script, read_at_most(path, root), file)


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

"""What is typed into a new note: a file for an editor, kept until the note is taken."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import click

from readerkit.app.folders import data_folder
from readerkit.app.library import warn
from readerkit.errors import ReaderkitError
from readerkit.terminal.asking import confirm
from readerkit.upstreams.store import write_atomically

Taken = TypeVar("Taken")


@dataclass(frozen=True, slots=True)
class DraftEntry:
    """The part of a draft that becomes a note."""

    file: Path
    text: str
    first_line: int
    """Of the entry in the file."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A file with an entry, and the command that takes it up again."""

    file: Path
    again: str
    offered: str = ""
    """The form as it was when the editor opened; empty for a file that was brought."""

    @classmethod
    def of(cls, form: str, again: Callable[[Path], str]) -> Draft:
        """Return a new draft that holds a form, in the reader's own folder."""
        # A path that is not UTF-8 is shown as well as it can be.
        text = form.encode("utf-8", "replace").decode()
        folder = _drafts()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            file = Path(tempfile.mkdtemp(prefix="note-", dir=folder)) / "note.yaml"
        except OSError as error:
            raise ReaderkitError(
                f"cannot write {folder}: {error.strerror}; a draft is kept there while "
                "you type: set READERKIT_DATA to a folder that can be written to"
            ) from None
        try:
            write_atomically(file, text.encode(), private=True)
        except ReaderkitError:
            file.parent.rmdir()  # a disk that is full keeps no text, and no folder
            raise
        return cls(file, again(file), text)

    def until_taken(self, take: Callable[[DraftEntry], Taken]) -> Taken:
        """Return ``take`` of the entry; on a terminal, edited until it succeeds.

        Raises:
            ReaderkitError: no editor, nothing typed, or faults that are left; what was
                typed is kept, and the message says how to go on with it.
        """
        try:
            if self.offered:
                self._edit()
            while True:
                try:
                    taken = take(self._entry())
                except ReaderkitError as error:
                    if not self._is_wanted_again(error):
                        raise self._refused(str(error)) from None
                    self._edit()
                    continue
                self._discard()
                return taken
        except (click.Abort, KeyboardInterrupt):
            click.echo(err=True)
            warn(str(self._refused("")).strip())
            raise

    def _edit(self) -> None:
        from readerkit.terminal.processes import lent_terminal

        try:
            with lent_terminal() as interrupts:
                click.edit(filename=str(self.file))
        except click.ClickException as error:
            if interrupts:  # and the editor has ended by it
                raise KeyboardInterrupt from None
            raise self._refused(
                f"{error.message}; set EDITOR to an editor that runs, or use --print "
                "and write the file yourself"
            ) from None

    def _entry(self) -> DraftEntry:
        """Return the typed text, from the first line that begins an entry."""
        try:
            saved = self.file.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
        except FileNotFoundError:
            raise ReaderkitError("the entry was removed") from None
        except OSError as error:
            raise ReaderkitError(f"{self.file}: {error.strerror}") from None
        except UnicodeDecodeError as error:
            raise ReaderkitError(f"{self.file}: not UTF-8 text: {error}") from None
        if saved.strip() == self.offered.strip():
            raise ReaderkitError("the entry was closed unchanged")
        start = re.search(r"^- ", saved, re.MULTILINE)
        if start is None:
            raise ReaderkitError(
                f"{self.file}: there is no entry left that begins with '- '"
            )
        first_line = saved.count("\n", 0, start.start()) + 1
        return DraftEntry(self.file, saved[start.start() :].rstrip() + "\n", first_line)

    def _holds_something(self) -> bool:
        typed = self.file.read_bytes().strip() if self.file.is_file() else b""
        return typed not in (b"", self.offered.strip().encode())

    def _is_wanted_again(self, error: ReaderkitError) -> bool:
        """Show what is wrong, and ask the person at the terminal, if there is one."""
        if not (sys.stdin.isatty() and sys.stderr.isatty() and self._holds_something()):
            return False
        warn(str(error))
        return bool(confirm("Edit it again?", default=True, err=True))

    def _refused(self, problem: str) -> ReaderkitError:
        """Return the error for a note that is not taken; what was typed is kept."""
        kept = "nothing was written"
        if self._holds_something():
            kept += f"; to go on with your text:\n    {self.again}"
        else:
            self._discard()
        return ReaderkitError(f"{problem}\n{kept}")

    def _discard(self) -> None:
        """Remove the draft; a file that the reader brought is theirs."""
        if self.file.parent.parent == _drafts():
            shutil.rmtree(self.file.parent, ignore_errors=True)


def _drafts() -> Path:
    return data_folder() / "drafts"

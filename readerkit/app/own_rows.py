"""Rows of catalogs that a reader keeps over those that ship, and which were taken."""

from __future__ import annotations

from pathlib import Path

from readerkit.app.folders import data_folder

FILES = ("models.yaml", "hardware.yaml", "prices.yaml", "runs.yaml")


class OwnRows:
    """The files of catalogs in a folder of the user's own; theirs are the names."""

    def __init__(self, folder: Path | None = None) -> None:
        """Take the folder; None: ``catalog`` among what is the reader's own."""
        self._folder = folder
        self.taken: dict[str, str] = {}
        """Of which row what was asked, and the file that it is from."""

    def find(self, file: str) -> Path | None:
        """Return where the user has a file of that name, if anywhere."""
        path = (self._folder or data_folder() / "catalog") / file
        return path if path.is_file() else None

"""Rows of catalogs that a reader keeps over those that ship, and which were taken."""

from __future__ import annotations

# A cold command does without pathlib.
# ruff: noqa: PTH113, PTH118
import os
from typing import TYPE_CHECKING

from readerkit.app.own_place import own_place

if TYPE_CHECKING:
    from pathlib import Path

FILES = ("models.yaml", "hardware.yaml", "prices.yaml", "runs.yaml")


class OwnRows:
    """The files of catalogs in a folder of the user's own; theirs are the names."""

    def __init__(self, folder: str | Path | None = None) -> None:
        """Take the folder; None: ``catalog`` among what is the reader's own."""
        self._folder = folder
        self.taken: dict[str, str] = {}
        """Of which row what was asked, and the file that it is from."""

    def find(self, file: str) -> Path | None:
        """Return where the user has a file of that name, if anywhere."""
        folder = self._folder or _own_catalog()
        if not os.path.isfile(os.path.join(folder, file)):
            return None
        from pathlib import Path

        from readerkit.app.folders import data_folder

        if not self._folder:
            data_folder()  # closes it to others
        return Path(folder, file)


def _own_catalog() -> str:
    place = own_place("READERKIT_DATA", "user_data_path")
    if not place:
        from readerkit.app.folders import data_folder

        data_folder()  # says what is missing
    return os.path.join(place, "catalog")

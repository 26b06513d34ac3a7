"""Where a user's own folders are, as text: a cold command does without pathlib."""

# ruff: noqa: PTH118
from __future__ import annotations

import os
import sys

_USUAL = {
    "user_cache_path": ("XDG_CACHE_HOME", ".cache"),
    "user_data_path": ("XDG_DATA_HOME", ".local/share"),
}
"""What platformdirs says on Linux: a variable, or a folder of the home."""


def own_place(variable: str, kind: str) -> str:
    """Return a folder that a variable names, else the user's usual one of a kind.

    Nothing, where a user has none.
    """
    given = os.environ.get(variable, "")
    if given.startswith("/"):
        return given
    if not given and sys.platform == "linux" and "ANDROID_DATA" not in os.environ:
        usual, below = _USUAL[kind]
        named, home = os.environ.get(usual, ""), os.environ.get("HOME", "")
        if named.startswith("/") and named == named.strip():
            return os.path.join(named, "readerkit")
        if not named and home.startswith("/"):
            return os.path.join(home.rstrip("/") or "/", below, "readerkit")
    return _asked(given, kind)


def _asked(given: str, kind: str) -> str:
    from pathlib import Path

    try:  # no HOME, and no entry in the user database: a relative path, or an error
        if given:
            return str(Path(given).expanduser().absolute())
        import platformdirs

        folder: Path = getattr(platformdirs, kind)("readerkit")
        return str(folder) if folder.is_absolute() else ""
    except RuntimeError:
        return ""

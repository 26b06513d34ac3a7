"""Where a user's own folders are, as text.

Where a variable names one, a cold command gets by without pathlib and platformdirs.
"""

from __future__ import annotations

import contextlib
import os


def own_place(variable: str, kind: str) -> str:
    """Return a folder that a variable names, else the user's usual one of a kind.

    Nothing, where a user has none: no HOME, and no entry in the user database.
    """
    given = os.environ.get(variable, "")
    if given.startswith("/"):
        return given
    from pathlib import Path

    with contextlib.suppress(RuntimeError):
        if given:
            return str(Path(given).expanduser().absolute())
        import platformdirs

        folder: Path = getattr(platformdirs, kind)("readerkit")
        return str(folder) if folder.is_absolute() else ""
    return ""

"""The languages that are read, each with its endings and its grammar."""

from __future__ import annotations

ENDINGS = {".py": "python"}
"""Of file names, to the language."""

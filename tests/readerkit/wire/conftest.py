"""The books that an editor and an assistant read in these tests."""

from tests.readerkit.commands.conftest import desk, locked, locked_once

__all__ = ["desk", "locked", "locked_once"]

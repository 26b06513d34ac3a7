"""The outputs of experiments that a book keeps: read, held against today, written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from readerkit.app.folders import read_at_most
from readerkit.app.library import Library
from readerkit.app.records import code_today
from readerkit.content.book import MINIS
from readerkit.evidence.experiment_output import (
    FILE,
    Output,
    read_outputs,
    write_outputs,
)
from readerkit.model.freshness import Change, MadeFrom, outdated
from readerkit.upstreams.store import blob_id, write_atomically


class KeptOutputs:
    """What the experiments of a book printed; nothing is read before somebody asks."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._file = library.root / "annotations" / FILE

    @cached_property
    def outputs(self) -> dict[str, Output]:
        """By the name of its program, each output that is kept.

        Raises:
            ContentError: a file that cannot be read.
        """
        if not self._file.is_file():
            return {}
        text = read_at_most(self._file, self._library.root)
        return read_outputs(text.decode("utf-8", "replace"), f"annotations/{FILE}")

    def of(self, name: str) -> tuple[Output, list[Change]] | None:
        """Return an output, and what has changed since it was made."""
        if (output := self.outputs.get(name)) is None:
            return None
        return output, outdated(output.made_from, self.today(name))

    def made_from(
        self, name: str, upstreams: Iterable[str], minis: Iterable[str]
    ) -> MadeFrom:
        """Return the parts of an output: the program, pins, files of the minis."""
        parts = (_program(name), *upstreams, *(f"{MINIS}: {path}" for path in minis))
        now = self.today(name)
        return {part: now[part] for part in parts if part in now}

    def today(self, name: str) -> MadeFrom:
        """Return all that an output can be made from, as it is."""
        program = self._library.root / _program(name)
        if not program.is_file():
            return self._code
        data = read_at_most(program, self._library.root)
        return {**self._code, _program(name): blob_id(data)}

    @cached_property
    def _code(self) -> MadeFrom:
        return code_today(self._library)

    def keep(self, new: Mapping[str, Output], known: Iterable[str]) -> None:
        """Write what was printed now, and before of others that the book knows."""
        kept = {name: self.outputs[name] for name in known if name in self.outputs}
        write_atomically(self._file, write_outputs({**kept, **new}).encode())


def _program(name: str) -> str:
    return f"annotations/experiments/{name}.py"

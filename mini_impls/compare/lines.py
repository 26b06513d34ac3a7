"""Notes which lines run, upstream's and a mini's."""

import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from inspect import CO_OPTIMIZED
from types import FrameType
from typing import Any

from mini_impls.compare.places import Places


@dataclass
class LineTrace:
    """Notes every line of a function that runs inside `with`, upstream's or a mini's.

    What runs because a module is being imported is no part of the work.
    """

    places: Places
    importing: int = 0
    """Modules whose import is under way."""
    lines: dict[tuple[str, str], set[int]] = field(
        default_factory=lambda: defaultdict(set)
    )
    _of_file: dict[str, Callable[..., Any] | None] = field(default_factory=dict)
    """What notes a line, by file; None where none is noted."""

    def __enter__(self) -> "LineTrace":
        """Start."""
        sys.settrace(self._enter_frame)
        return self

    def __exit__(self, *error: object) -> None:
        """Stop."""
        sys.settrace(None)

    def _enter_frame(self, frame: FrameType, event: str, arg: Any) -> Any:
        if frame.f_code.co_name == "<module>":
            self.importing += 1
            frame.f_trace_lines = False
            return self._leave_module
        if self.importing or not frame.f_code.co_flags & CO_OPTIMIZED:
            return None  # the second is the body of a class
        filename = frame.f_code.co_filename
        if filename not in self._of_file:
            self._of_file[filename] = self._noting(filename)
        note = self._of_file[filename]
        return note and note(frame, "line", arg)

    def _noting(self, filename: str) -> Callable[..., Any] | None:
        place = self.places.find_noted(filename)
        if place is None:
            return None
        seen = self.lines[place]

        def note(frame: FrameType, event: str, arg: Any) -> Any:
            if event == "line":
                seen.add(frame.f_lineno)
            return note

        return note

    def _leave_module(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "return":
            self.importing -= 1
        return self._leave_module

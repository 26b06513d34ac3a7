"""Where a call comes from: the lines of upstream and minis that stood on the stack."""

from types import FrameType

from mini_impls.compare.places import AROUND, LAUNCHER, Places
from readerkit.evidence.record import ExecutedLine
from readerkit.model.git_names import parse_path

DISPATCHER = (
    "torch/_ops.py",
    "torch/overrides.py",
    "torch/_compile.py",
    "torch/_jit_internal.py",
    "torch/_library/",
    "torch/utils/_python_dispatch.py",
    "torch/utils/_contextlib.py",
    "torch/_dynamo/",
    "torch/distributed/distributed_c10d.py",
    "torch/distributed/c10d_logger.py",
    "torch/distributed/_functional_collectives.py",
    *AROUND,
)
"""Frames that only pass a call on."""

ENGINE = ("torch/autograd/", "torch/_tensor.py")
"""Frames from which a call can only have come through C++: autograd's engine."""


class Stacks:
    """The stacks of one rank, each kept once."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self._known: dict[tuple[ExecutedLine, ...], int] = {}

    def all(self) -> tuple[tuple[ExecutedLine, ...], ...]:
        """Return every stack, by number."""
        return tuple(self._known)

    def site(self, frame: FrameType | None) -> ExecutedLine | None:
        """Return the line that made a call; None where it came from C++."""
        while frame is not None:
            place = self.places.find(frame.f_code.co_filename)
            if place is not None and not place[1].startswith(DISPATCHER):
                return None if _is_engine(place) else _site(place, frame)
            frame = frame.f_back
        return None

    def number(self, frame: FrameType | None) -> int:
        """Return the number of the stack that ends in this frame.

        It begins where the rank does: below that, a forked one has its parent's frames.
        """
        sites: list[ExecutedLine] = []
        while frame is not None:
            place = self.places.find(frame.f_code.co_filename)
            passes_on = place is None or place[1].startswith(DISPATCHER)
            if place is not None and not passes_on and not _is_engine(place):
                sites.append(_site(place, frame))
                if place == LAUNCHER:
                    break
            frame = frame.f_back
        return self._known.setdefault(tuple(sites), len(self._known))


def _is_engine(place: tuple[str, str]) -> bool:
    upstream, path = place
    return upstream == "pytorch" and path.startswith(ENGINE)


def _site(place: tuple[str, str], frame: FrameType) -> ExecutedLine:
    upstream, path = place
    return ExecutedLine(
        upstream, parse_path(path), frame.f_lineno, frame.f_code.co_qualname
    )

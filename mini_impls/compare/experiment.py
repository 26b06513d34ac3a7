"""Runs an experiment's program as one rank: on the CPU, within this machine.

Upstream code is what a folder of verified files holds, with the shims that comparisons
use. What ends the program is told with the line of the program that did it.
"""

import argparse
import faulthandler
import ipaddress
import json
import os
import runpy
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import Any


def main() -> None:
    """Run the program that is named; tell in the report what ended it, if it failed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=Path)
    parser.add_argument("--report", type=Path, required=True)
    parser.add_argument("--tree", type=Path)
    parser.add_argument("--shims", action="store_true")
    args = parser.parse_args()
    stack = args.report.with_suffix(".stack").open("w")
    faulthandler.register(signal.SIGTERM, stack, all_threads=False, chain=True)
    program = str(args.program)
    if args.tree:
        sys.path.insert(0, str(args.tree))
    sys.argv = [program]
    try:
        _stay_here(program, args.report)
        with _shimmed() if args.shims else nullcontext():
            runpy.run_path(program, run_name="__main__")
        sys.stdout.flush()
    except BaseException as error:
        if isinstance(error, SystemExit) and not error.code:
            return
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == program]
        line = getattr(error, "lineno", None) if not lines else lines[-1]
        said = traceback.format_exception_only(error)[-1].strip()
        _tell(args.report, line, said)
        sys.stdout.flush()
        os._exit(1)  # no teardown: it could wait for the very rank that failed


def _tell(report: Path, line: int | None, said: str) -> None:
    report.write_text(json.dumps({"line": line or 0, "error": said}))


@contextmanager
def _shimmed() -> Iterator[None]:
    """Have torch answer as Megatron needs it where there is no GPU."""
    import torch

    from mini_impls.compare.shims import ALL, applied

    with applied(ALL, torch.device("cpu")):
        yield


def _stay_here(program: str, report: Path) -> None:
    """Have no socket of Python's reach beyond this machine."""

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if event in ("socket.connect", "socket.sendto") and _is_beyond(arguments[1]):
            line = _line_of(program, sys._getframe(1))
            _tell(report, line, f"connects beyond this machine: {arguments[1][0]}")
            os._exit(1)  # what it would raise, the program could catch

    sys.addaudithook(watch)


def _is_beyond(address: object) -> bool:
    if not isinstance(address, tuple) or not address:
        return False  # of this machine: a path
    host = str(address[0]).partition("%")[0]
    try:
        return not ipaddress.ip_address(host or "127.0.0.1").is_loopback
    except ValueError:
        return host != "localhost"


def _line_of(program: str, frame: FrameType | None) -> int | None:
    while frame is not None and frame.f_code.co_filename != program:
        frame = frame.f_back
    return frame.f_lineno if frame else None


if __name__ == "__main__":
    main()

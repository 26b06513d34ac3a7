"""Who failed first, when a run ends because a rank did.

A rank leaves in the run's directory: `RANK.error`, what it raised; `RANK.done`, an
empty file once its work has returned; `RANK.stack`, where it stood when it was ended.
"""

import json
import linecache
import re
import signal
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FELT = re.compile(
    r"closed by (remote )?peer|reset by peer|gloo.*(broken pipe|socket closed)", re.I
)


def is_felt(error: str) -> bool:
    """Tell whether an error says no more than that a neighbour has gone."""
    return FELT.search(error) is not None


def write_report(run_dir: Path, rank: int, error: BaseException) -> None:
    """Leave what a rank raised, whole or not at all."""
    report = {
        "time": time.monotonic(),
        "error": traceback.format_exception_only(error)[-1].strip(),
        "traceback": "".join(traceback.format_exception(error)),
    }
    aside = run_dir / f"{rank}.part"
    aside.write_text(json.dumps(report))
    aside.rename(run_dir / f"{rank}.error")


def explain(run_dir: Path, world_size: int, codes: Mapping[int, int]) -> str:
    """Name the first rank that failed and its own error, then who was missing."""
    reports = {
        r: json.loads(path.read_text())
        for r in range(world_size)
        if (path := run_dir / f"{r}.error").exists()
    }
    for rank, code in codes.items():
        if rank not in reports:  # it died without a word: neighbours only felt it
            how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
            return f"rank {rank} failed first: it ended by {how} before it was done"
    # A neighbour may be quicker to say that a connection closed than the rank that
    # closed it is to say why.
    first = min(
        reports,
        key=lambda r: (is_felt(reports[r]["error"]), reports[r]["time"]),
    )
    lines = [f"rank {first} failed first: {reports[first]['error']}"]
    if "timed out" in lines[0].lower() or is_felt(lines[0]):
        for rank in sorted(set(range(world_size)) - {first}):
            lines.append(_where(run_dir, rank, reports.get(rank)))
    return "\n".join([*lines, reports[first]["traceback"].rstrip()])


def _where(run_dir: Path, rank: int, report: Mapping[str, Any] | None) -> str:
    """Say where a rank stood, by its own traceback or by the stack of its end."""
    if (run_dir / f"{rank}.done").exists():
        return f"rank {rank} is missing: it had already returned"
    stack = report["traceback"] if report else (run_dir / f"{rank}.stack").read_text()
    frames = re.findall(r'File "(.+)", line (\d+),? in (\S+)', stack)
    if report:
        own = [frame for frame in frames if "/torch/distributed/" not in frame[0]]
        return f"rank {rank} failed as well, {_place(own[-1])}"
    if not frames:
        return f"rank {rank} is missing: where it stood is unknown"
    place = _place(frames[0])
    waits = "torch/distributed/" in place or ".wait(" in place
    state = "waits as well" if waits else "is missing"
    return f"rank {rank} {state}: it stands {place}"


def _place(frame: tuple[str, str, str]) -> str:
    path, line, function = frame
    code = linecache.getline(path, int(line)).strip()
    return f"at {path}:{line} in {function}: {code}"

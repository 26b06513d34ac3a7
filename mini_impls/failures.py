"""Who failed first, when a run ends because a rank did.

A rank leaves in the run's directory: `RANK.error`, what it raised; `RANK.done`, an
empty file once its work has returned; `RANK.stack`, where it stood when it was ended.
"""

import errno
import json
import linecache
import re
import signal
import time
import traceback
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from readerkit.system.output import OutputError

FELT = re.compile(
    r"closed by (remote )?peer|reset by peer|gloo.*(broken pipe|socket closed)", re.I
)

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""A disk that takes no more: no line of code is to blame."""


class RankFailedError(RuntimeError):
    """The run ended because a rank failed; the message names the first one."""

    def __init__(
        self,
        said: str,
        *,
        traceback: str = "",
        hung: bool = False,
        missing: Collection[int] = (),
    ) -> None:
        super().__init__("\n".join(filter(None, [said, traceback])))
        self.said = said
        """Who failed, and where the others stood."""
        self.traceback = traceback
        """Of the rank that failed first, where it raised."""
        self.hung = hung
        """Whether ranks waited for what never came, or for one that had ended."""
        self.missing = frozenset(missing)
        """The ranks that were waited for, as far as they are known."""


def is_felt(error: str) -> bool:
    """Tell whether an error says no more than that a neighbour has gone."""
    return FELT.search(error) is not None


def is_stopped(pid: int | None) -> bool:
    """Tell whether a process was stopped by a signal, as by ^Z (Linux)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] == "T"


def write_report(run_dir: Path, rank: int, error: BaseException) -> None:
    """Leave what a rank raised, whole or not at all."""
    report = {
        "time": time.monotonic(),
        "error": traceback.format_exception_only(error)[-1].strip(),
        "traceback": "".join(traceback.format_exception(error)),
        "is_full": isinstance(error, OSError) and error.errno in FULL,
        "is_output": isinstance(error, OutputError),
    }
    aside = run_dir / f"{rank}.part"
    aside.write_text(json.dumps(report))
    aside.rename(run_dir / f"{rank}.error")


def explain(
    run_dir: Path,
    world_size: int,
    codes: Mapping[int, int],
    stopped: Collection[int] = (),
) -> RankFailedError:
    """Name the first rank that failed and its own error, then who was missing.

    `codes` are the exit codes of ranks that have ended, `stopped` are those that a
    signal stopped before any was told to end.
    """
    reports = {
        r: json.loads(path.read_text())
        for r in range(world_size)
        if (path := run_dir / f"{r}.error").exists()
    }
    for rank, code in codes.items():
        if rank not in reports:  # it died without a word: neighbours only felt it
            how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
            return RankFailedError(
                f"rank {rank} failed first: it ended by {how} before it was done"
            )
    # A neighbour may be quicker to say that a connection closed than the rank that
    # closed it is to say why.
    first = min(
        reports,
        key=lambda r: (is_felt(reports[r]["error"]), reports[r]["time"]),
    )
    error = reports[first]["error"]
    if reports[first]["is_output"]:  # nor is a rank
        return RankFailedError(error.partition(": ")[2])
    timed_out = "timed out" in error.lower()
    lines, missing = [f"rank {first} failed first: {error}"], set[int]()
    if timed_out or is_felt(error):
        for rank in sorted(set(range(world_size)) - {first, *stopped}):
            where, is_missing = _where(run_dir, rank, reports.get(rank))
            lines.append(where)
            missing |= {rank} if is_missing else set()
    if held := sorted(set(stopped) - set(reports)):
        which = ", ".join(map(str, held))
        lines[0] = f"rank {first} waited for it: {error}"
        lines.insert(0, f"rank {which} failed first: a signal stopped it")
        missing |= set(held)
    return RankFailedError(
        "\n".join(lines),
        traceback=""
        if reports[first]["is_full"]
        else reports[first]["traceback"].rstrip(),
        hung=timed_out or bool(missing),
        missing=missing,
    )


def _where(
    run_dir: Path, rank: int, report: Mapping[str, Any] | None
) -> tuple[str, bool]:
    """Say where a rank stood, by its own traceback or by the stack of its end.

    Also return whether it is missing: it neither waits nor failed as well.
    """
    if (run_dir / f"{rank}.done").exists():
        return f"rank {rank} is missing: it had already returned", True
    stack = report["traceback"] if report else (run_dir / f"{rank}.stack").read_text()
    frames = re.findall(r'File "(.+)", line (\d+),? in (\S+)', stack)
    if report:
        own = [frame for frame in frames if "/torch/distributed/" not in frame[0]]
        return f"rank {rank} failed as well, {_place(own[-1])}", False
    if not frames:
        return f"rank {rank} is missing: where it stood is unknown", True
    place = _place(frames[0])
    if "torch/distributed/" in place or ".wait(" in place:
        return f"rank {rank} waits as well: it stands {place}", False
    return f"rank {rank} is missing: it stands {place}", True


def _place(frame: tuple[str, str, str]) -> str:
    path, line, function = frame
    code = linecache.getline(path, int(line)).strip()
    return f"at {path}:{line} in {function}: {code}"

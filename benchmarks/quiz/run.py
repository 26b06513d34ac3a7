"""How long until the first question is on the screen.

Starts ``readerkit quiz 35`` many times, each as its own process, and takes the time
until the line with the first question has come; the quiz is then left. ``cold`` parses
the whole bank, ``warm`` finds it parsed in the cache. The CPU time of the process, to
its end, tells what a busy machine adds.
"""

from __future__ import annotations

import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
RUNS = 15
CASES = {
    "warm, a number": ("mem-static-adam", False),
    "warm, a choice": ("tp-bias-once", False),
    "warm, a line to find": ("tp-close-line", False),
    "cold, a number": ("mem-static-adam", True),
}


def first_question(question: str, folders: dict[str, str]) -> tuple[float, float]:
    """Return seconds until the first question, and of CPU in all."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "readerkit", "quiz", "35", "--json", "--new"]
    start = time.perf_counter()
    with subprocess.Popen(
        [*command, "--only", question],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | folders,
        cwd=ROOT,
    ) as process:
        _, shown = process.stdout.readline(), process.stdout.readline()
        seconds = time.perf_counter() - start
        process.communicate()
    assert b'"question"' in shown, shown
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, cpu


def main() -> None:
    blobs = Path(os.environ["READERKIT_CACHE"]) / "blobs"
    print(f"Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as scratch:
        for name, (question, cold) in CASES.items():
            times = []
            for run in range(RUNS + 1):
                cache = Path(scratch, f"{question}-{cold}-{run if cold else 0}")
                cache.mkdir(exist_ok=True)
                if not (cache / "blobs").exists():
                    (cache / "blobs").symlink_to(blobs)
                folders = {"READERKIT_CACHE": str(cache), "READERKIT_DATA": scratch}
                times.append(first_question(question, folders))
            walls, cpus = zip(*times[1:], strict=True)
            print(
                f"{name:22} median {statistics.median(walls) * 1000:4.0f} ms, "
                f"least {min(walls) * 1000:4.0f} ms; CPU {min(cpus) * 1000:4.0f} ms"
            )


if __name__ == "__main__":
    main()

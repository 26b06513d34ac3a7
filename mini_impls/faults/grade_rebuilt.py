"""`python -m mini_impls.faults.grade_rebuilt`: a mini with a section of a reader's.

Each check runs the same work with the reader's file and with the mini's own, and what
is measured must come out alike. Then the mini's own tests run on a copy that has the
reader's file, and at last the comparison with upstream. The file is run in ranks of
this process and in that copy alone; what does not end in its time is ended.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing import resource_tracker
from pathlib import Path

from torch.distributed.elastic.multiprocessing import SignalException

from mini_impls import launch
from mini_impls.failures import RankFailedError
from mini_impls.faults import own_tests
from mini_impls.faults.fault import install
from mini_impls.faults.run import run_work
from mini_impls.faults.symptoms import HELD, UNDER_WAY, Outcome
from mini_impls.supervise import ending_once
from readerkit.app.rebuilding import find_exercise, read_exercises
from readerkit.content.exercises import Exercise, ExerciseCheck
from readerkit.errors import ReaderkitError
from readerkit.system.children import ending_all
from readerkit.system.status import Status, take_over

CLOSE = 1e-4
"""How far two measures of the same may be apart, of the larger of one and the value."""
WORLD_SIZE = 2


def longest_work(timeout_s: float) -> float:
    """Return how many seconds the reader's section may take on the exercise's work."""
    return 4 * timeout_s + 30


class OverTimeError(Exception):
    """The reader's file does not come to its end."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check of an exercise, as it came out."""

    says: str
    passed: bool | None
    """None where it cannot be made here."""
    told: str = ""
    """What was measured instead, how the run failed, or why it was left out."""
    command: str = ""
    """Of readerkit, with which the check can be made by itself."""
    hint: int = 0
    """Which hint of the exercise, from 1, helps where this failed; 0: none does.

    What does not run has the first; what fails tests, or is not upstream, the last.
    """


def grade(exercise: Exercise, path: Path, timeout_s: float) -> Iterator[CheckResult]:
    """Yield the checks in their order, up to the first that fails.

    Raises:
        RuntimeError: the mini itself does not come to its end here.
    """
    status = Status()

    def run(file: Path | None) -> Outcome:
        whose = f"your section, {longest_work(timeout_s):g} s at most,"
        status.show(f"{'the mini' if file is None else whose} on two ranks")
        arguments = (exercise.work, file, timeout_s)
        try:
            ranks = launch.run(run_work, arguments, world_size=WORLD_SIZE)
        except RankFailedError as error:
            return Outcome(failure=error)
        return Outcome(ranks=ranks)

    theirs = run(path)
    if theirs.failure is not None:
        said = _said(theirs.failure, path)
        yield CheckResult("it runs to its end", False, said, hint=1)
        return
    yield CheckResult("it runs to its end", True)
    right = run(None)
    if right.failure is not None:
        raise RuntimeError(f"the mini itself failed here: {right.failure}")
    for check in exercise.checks:
        told = "; ".join(_differences(check, right, theirs))
        yield CheckResult(check.says, not told, told, hint=check.hint)
        if told:
            return
    with status.waiting("the mini's own tests on your section"):
        of_tests = hold_against_tests(exercise, path)
    yield of_tests
    if exercise.beside is not None and of_tests.passed is not False:
        status.show("your section beside upstream")
        yield beside_upstream(exercise, path, timeout_s)


def _differences(
    check: ExerciseCheck, right: Outcome, theirs: Outcome
) -> Iterator[str]:
    for name in check.measures:
        if not right.column(name):
            raise RuntimeError(f"the work does not measure {name}")
        pairs = zip(right.column(name), theirs.column(name), strict=True)
        for rank, (want, got) in enumerate(pairs):
            if name == UNDER_WAY or name in HELD.values():
                # More overlap, and less memory, is no fault.
                is_off = got < want if name == UNDER_WAY else got > want
            else:
                is_off = not abs(want - got) <= CLOSE * max(1.0, abs(want))
            if is_off:
                yield f"rank {rank}: {name}: {got:g}, in the mini {want:g}"
                break


def hold_against_tests(exercise: Exercise, path: Path) -> CheckResult:
    """Run the mini's own tests on a copy with the reader's file in the mini's place."""
    says, hint = "it passes the mini's own tests", len(exercise.hints)
    result = partial(CheckResult, says, hint=hint)
    if left_out := own_tests.why_left_out(exercise):
        return result(None, f"left out: {left_out}")
    with ending_once() as may_end, own_tests.running(exercise, path) as tests:
        may_end()
        try:
            failed = tests.wait()
        except OverTimeError:
            name = tests.under_way() or "no test had begun"
            return result(False, f"they were ended when their time was over: {name}")
        except RuntimeError as error:
            return result(None, f"left out: {error}")
    if failed is None:
        return result(True)
    where = _where(failed.traceback, exercise.at.file)
    told = [f"{failed.rule}: {failed.said}", f"{failed.file} {failed.name}", *where]
    return result(False, "\n".join(told))


def beside_upstream(exercise: Exercise, path: Path, timeout_s: float) -> CheckResult:
    """Run the comparison with the reader's file in the mini's place."""
    command = f"compare {exercise.mini} --upstream {exercise.beside}"
    says, hint = "it does what upstream does", len(exercise.hints)
    result = partial(CheckResult, says, command=command, hint=hint)
    if not launch.can_fork("gloo"):  # a rank that imports anew has the mini's own
        return result(None, "left out: ranks are not forked on this system")
    install(path)
    # Not before: they import the mini.
    from mini_impls.compare.comparisons import find
    from mini_impls.compare.run import compare
    from readerkit.app.library import open_library

    try:
        record = compare(
            open_library(),
            find(exercise.mini, exercise.beside),
            world_size=WORLD_SIZE,
            backend="gloo",
            steps=8,
            timeout_s=timeout_s,
        )
    except RankFailedError as error:
        return result(False, _said(error, path))
    except ReaderkitError as error:
        return result(None, f"left out: {error}")
    assert record is not None
    off = [line for line in record.verdicts if line.state == "differ"]
    told = "; ".join(
        f"{line.what}: mini {line.mini}, upstream {line.upstream}" for line in off
    )
    return result(record.agrees, told)


def _said(failure: RankFailedError, path: Path) -> str:
    """Return who failed, and where in the reader's file; what called it is ours."""
    where = _where(failure.traceback, str(path))
    return "\n".join([failure.said.replace(str(path), path.name), *where])


def _where(traceback: str, file: str) -> list[str]:
    """Return the lines of a file that a traceback names, Python's or pytest's."""
    frame = rf'{re.escape(file)}(?:", line |:)(\d+)(?:,|:) in (\S+)\n(.*)'
    name = Path(file).name
    return [
        f"{name}:{line}, in {function}: {code.strip()}"
        for line, function, code in re.findall(frame, traceback)
    ]


def main(argv: list[str] | None = None) -> int:
    """Grade one file; write each result as it is known. Return 0 where none fails."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("mini")
    parser.add_argument("name")
    parser.add_argument("file", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--timeout", type=float, required=True)
    parser.add_argument("--limit", type=float, required=True)
    args = parser.parse_args(argv)
    exercise = find_exercise(read_exercises(), args.mini, args.name)
    take_over()
    with suppress(AttributeError, OSError):  # where there is no stderr
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # prints are no results
        sys.stdout = sys.stderr  # which keeps no line back, so that none is lost
    resource_tracker.ensure_running()  # Python's own: it stays when the rest is ended
    try:
        with ending_once() as may_end, ending_all():
            may_end()
            return _write_results(exercise, args)
    except SignalException as error:
        return 128 + error.sigval


def _write_results(exercise: Exercise, args: argparse.Namespace) -> int:
    def end(signum: int, frame: object) -> None:
        raise OverTimeError

    signal.signal(signal.SIGALRM, end)
    passed = True
    with args.results.open("w", encoding="utf-8") as results:

        def write(result: CheckResult) -> None:
            results.write(json.dumps(asdict(result)) + "\n")
            results.flush()
            os.fsync(results.fileno())

        limit = min(args.limit, longest_work(args.timeout))
        try:
            signal.setitimer(signal.ITIMER_REAL, limit)
            for result in grade(exercise, args.file, args.timeout):
                write(result)
                passed &= result.passed is not False
                limit = args.limit  # each has as long
                signal.setitimer(signal.ITIMER_REAL, limit)
        except OverTimeError:
            says = f"it was ended after {limit:g} s: does a loop never end?"
            write(CheckResult("it comes to its end", False, says))
            return 1
        except RuntimeError as error:
            print(error, file=sys.stderr)
            return 2
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            Status().clear()
    return 0 if passed else 1


if __name__ == "__main__":
    raise SystemExit(main())

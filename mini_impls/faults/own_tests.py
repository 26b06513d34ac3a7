"""A mini's own tests, held against a section that a reader wrote.

Minis and tests are copied, the reader's file takes the mini's place in the copy, and
pytest runs there: whatever a test starts imports the copy too. An installation from a
wheel has no tests.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from readerkit.app.rebuilding import ROOT
from readerkit.content.exercises import Exercise
from readerkit.system.children import LEFT, end_with_parent
from readerkit.system.status import STARTED
from readerkit.system.temporary import temporary_folder

TESTS = "tests/mini_impls"
NEEDED = ("pytest", "hypothesis")
CHOSEN = "not slow"
"""Of them: what `make test` and `make further` run."""


def tests_of(exercise: Exercise, root: Path = ROOT) -> tuple[str, ...]:
    """Return the files of tests of a section: those of its file, then of its mini."""
    names = dict.fromkeys((Path(exercise.at.file).stem, exercise.mini))
    files = [f"{TESTS}/test_{name}.py" for name in names]
    return tuple(file for file in files if (root / file).is_file())


def why_left_out(exercise: Exercise, root: Path = ROOT) -> str:
    """Return why the tests cannot be run here; empty: they can."""
    if not tests_of(exercise, root):
        return "the tests are in readerkit's repository, and this is no clone of it"
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        return f"the tests run on {' and '.join(missing)}, not installed here"
    return ""


@dataclass(frozen=True, slots=True)
class FailedTest:
    """The first test that did not pass."""

    file: str
    name: str
    said: str
    """Of what it raised, the line that says most."""
    traceback: str

    @property
    def rule(self) -> str:
        """Return what the test holds the mini to: its name, in words."""
        name, _, case = self.name.partition("[")
        words = name.removeprefix("test_").replace("_", " ")
        return f"{words} ({case.removesuffix(']')})" if case else words


@dataclass(frozen=True, slots=True)
class OwnTests:
    """Pytest at work in a copy."""

    process: subprocess.Popen[bytes]
    folder: Path

    def wait(self) -> FailedTest | None:
        """Return the test that failed once all is over; None where all passed.

        Raises:
            RuntimeError: pytest cannot run them; with what it said.
        """
        code = self.process.wait()
        report = self.folder / "report.xml"
        if code == 0:
            return None
        if code in (1, 2) and report.exists():  # a test, or a file of tests, failed
            return _read_failure(report)
        if code in (3, 4, 5):
            raise RuntimeError(f"pytest cannot run the tests here:\n{self._output()}")
        said = f"the process of the tests was ended, exit {code}"
        return FailedTest("", self.under_way(), said, "")

    def under_way(self) -> str:
        """Return the test that has begun and is not over; empty where there is none."""
        begun = re.findall(r"^\S+::(\S+)[ \t]*$", self._output(), re.MULTILINE)
        return begun[-1] if begun else ""

    def _output(self) -> str:
        return (self.folder / "output").read_text("utf-8", "replace")


def _read_failure(report: Path) -> FailedTest:
    for case in ET.parse(report).iter("testcase"):
        for wrong in (*case.iter("failure"), *case.iter("error")):
            text = wrong.text or ""
            # Pytest puts E before each line of what was raised.
            raised = re.findall(r"^E +(\S.*)$", text, re.MULTILINE) or [""]
            # What a rank raised has its traceback before it.
            said = raised[-1] if "Traceback" in raised[0] else raised[0]
            traceback = re.sub(r"^E   ", "", text, flags=re.MULTILINE)
            file = f"{(case.get('classname') or '').replace('.', '/')}.py"
            return FailedTest(file, case.get("name", ""), said, traceback)
    raise RuntimeError("pytest says that a test failed, and not which")


@contextmanager
def running(exercise: Exercise, path: Path) -> Iterator[OwnTests]:
    """Run the tests on a copy with the file at `path` in it; end what is left of it."""
    with temporary_folder("readerkit-own-tests-") as name:
        folder = Path(name)
        _copy(folder, exercise, path)
        own = ("READERKIT_COMMAND", STARTED, LEFT)  # what this process was told
        env = {name: value for name, value in os.environ.items() if name not in own}
        with (folder / "output").open("wb") as output:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "pytest", "-x", "-v", "--tb=short"),
                    *("-p", "no:cacheprovider", "-m", CHOSEN),
                    *("--junitxml", "report.xml", *tests_of(exercise)),
                ],
                cwd=folder,
                env={**env, "PYTHONPATH": name, "COLUMNS": "200"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=end_with_parent,
            )
        try:
            yield OwnTests(process, folder)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _copy(folder: Path, exercise: Exercise, path: Path) -> None:
    """Lay minis and tests into a folder as they lie in the repository."""
    for part in ("mini_impls", "tests"):
        shutil.copytree(ROOT / part, folder / part, ignore=_but_python)
    shutil.copy(ROOT / "pyproject.toml", folder)
    shutil.copy(path, folder / exercise.at.file)


def _but_python(directory: str, names: list[str]) -> list[str]:
    """Return what of a folder is not copied: all but modules and what minis read."""
    kept = (".py", ".yaml")
    return [
        name
        for name in names
        if name == "__pycache__"
        or not (name.endswith(kept) or Path(directory, name).is_dir())
    ]

"""A command on a real terminal: a session of its own, typed into, stopped, hung up."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

LEADER = Path(__file__).with_name("session_leader.py")
READERKIT = (sys.executable, "-m", "readerkit")
WAIT_S = 300.0
"""A guard against hangs, which no machine should reach, however crowded."""


class Terminal:
    """A job in the foreground of a terminal that controls it, and a person there.

    The job's parent is a shell with job control (`session_leader.py`): ^C, ^\\ and ^Z
    are typed, and reach the job as the signals that the kernel makes of them.
    """

    def __init__(
        self,
        *command: str,
        columns: int = 80,
        lines: int = 24,
        cwd: Path | None = None,
        environment: Mapping[str, str | None] | None = None,
    ) -> None:
        self.shown = ""
        """Everything that was written so far."""
        self._read = 0
        self._reports: list[dict[str, Any]] = []
        self._unread = self._written = b""
        self._ended = False
        self._master, slave = pty.openpty()
        self.resize(columns, lines)
        theirs, self._control = os.pipe()
        self._report, ours = os.pipe()
        env = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
        env["TERM"] = "xterm-256color"
        for name, value in (environment or {}).items():
            env.pop(name, None)
            if value is not None:
                env[name] = value
        self._leader = subprocess.Popen(
            [
                *(sys.executable, "-I", "-S", str(LEADER), str(theirs), str(ours)),
                *command,
            ],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            pass_fds=(theirs, ours),
            start_new_session=True,
            cwd=cwd,
            env=env,
        )
        for descriptor in (slave, theirs, ours):
            os.close(descriptor)
        self._sources = {self._master, self._report}
        self.pid: int = self._reported("started")["started"]
        """Of the command, which leads its process group."""

    # --- what a person does ---

    def type(self, text: str) -> None:
        """Type, and press no key that is not said: a newline is part of the text."""
        os.write(self._master, text.encode())

    def interrupt(self) -> None:
        """Press ^C."""
        self.type("\x03")

    def quit(self) -> None:
        """Press ^\\."""
        self.type("\x1c")

    def stop(self) -> None:
        """Press ^Z, and wait until the shell has the terminal back.

        All of the job stands then: a pager that tidies up first stops after its parent,
        and would stop after "fg" where nobody waits for it.
        """
        self.type("\x1a")
        assert self._reported("stopped")["stopped"] == "SIGTSTP"
        deadline = time.monotonic() + WAIT_S
        while not self._states() <= {"T", "Z"}:
            assert time.monotonic() < deadline, f"it goes on; so far:\n{self.shown}"
            time.sleep(0.02)

    def resume(self) -> None:
        """Say fg, and wait until the command has the terminal again."""
        os.write(self._control, b"fg\n")
        self._reported("continued")

    def resize(self, columns: int, lines: int) -> None:
        """Drag the window; the kernel tells the foreground with SIGWINCH."""
        size = struct.pack("HHHH", lines, columns, 0, 0)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, size)

    def hang_up(self) -> None:
        """Close the window."""
        self._sources.discard(self._master)
        os.close(self._master)
        self._master = -1

    # --- what a person sees ---

    def read_until(self, words: str) -> str:
        """Return what was written up to these words; the rest is read next."""
        self._pump(lambda: words in self.shown[self._read :], repr(words))
        end = self.shown.index(words, self._read) + len(words)
        seen, self._read = self.shown[self._read : end], end
        return seen

    def wait_until_asked(self) -> None:
        """Wait until all of the job sleeps: it waits for a key, and no longer works.

        An interrupt just before Python reads a line is only seen with the next key.
        """
        deadline = time.monotonic() + WAIT_S
        asleep = 0
        while asleep < 3:
            assert time.monotonic() < deadline, f"it works on; so far:\n{self.shown}"
            time.sleep(0.02)
            asleep = asleep + 1 if self._states() <= {"S"} else 0

    def _states(self) -> set[str]:
        """Return the states of the job's processes, by their letters in /proc."""
        found = set()
        for path in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                state, _, group = path.read_text().rpartition(")")[2].split()[:3]
                found |= {state} if int(group) == self.pid else set()
        return found

    def close(self) -> int:
        """Return the exit code once the command has ended, negative for a signal.

        All that it started has ended too, and the terminal is as it was.
        """
        ended = self._reported("ended")
        self._ended = True
        self._pump(lambda: not self._sources, "end")  # what was written last
        assert ended["left"] == [], f"left behind: {ended['left']}"
        assert ended["tidy"], "the terminal's settings were changed"
        self.__exit__(None, None, None)
        code: int = ended["ended"]
        return code

    def __enter__(self) -> Terminal:
        """Return itself, which leaves nothing behind, whatever fails."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End whatever still runs."""
        if not self._ended:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        for descriptor in (self._master, self._control, self._report):
            if descriptor >= 0:
                os.close(descriptor)
        self._master = self._control = self._report = -1
        self._leader.kill()
        self._leader.wait()

    # --- how ---

    def _reported(self, what: str) -> dict[str, Any]:
        """Return the next report of a kind; what is written meanwhile is kept."""
        found: list[dict[str, Any]] = []

        def came() -> bool:
            found[:] = [each for each in self._reports if what in each]
            return bool(found)

        self._pump(came, f"report of what {what}")
        self._reports.remove(found[0])
        return found[0]

    def _pump(self, done: Callable[[], bool], what: str) -> None:
        """Read the terminal and the reports until something is so."""
        deadline = time.monotonic() + WAIT_S
        while not done():
            left = max(0.0, deadline - time.monotonic())
            ready, _, _ = select.select([*self._sources], [], [], left)
            assert ready, f"no {what} within {WAIT_S:g} s; so far:\n{self.shown}"
            for descriptor in ready:
                try:
                    data = os.read(descriptor, 1 << 16)
                except OSError:  # the terminal's last process is gone
                    data = b""
                if not data:
                    self._sources.discard(descriptor)
                elif descriptor == self._master:
                    self._written += data
                    text = self._written.decode(errors="replace")
                    self.shown = text.replace("\r\n", "\n")
                else:
                    *lines, self._unread = (self._unread + data).split(b"\n")
                    self._reports += map(json.loads, lines)
            assert self._sources or done(), f"no {what}; all it wrote:\n{self.shown}"

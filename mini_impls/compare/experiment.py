"""`python -m mini_impls.compare.experiment`: runs programs, asked for line by line.

Torch is imported once; each rank of a program is a fork of this process, in a session
of its own, on the CPU, within this machine. What ends a rank is told with the line of
the program that did it. Behind a program everything that its ranks started is ended.
"""

import ctypes
import faulthandler
import fcntl
import functools
import importlib
import ipaddress
import json
import os
import re
import resource
import runpy
import signal
import socket
import struct
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from types import FrameType
from typing import Any

import mini_impls
from readerkit.model.language import Told, packed, unpacked
from readerkit.system.children import adopt_orphans, end_with_parent

PRELOADED = ("fsdp", "pipelining", "tensor.parallel")
"""Of torch.distributed: what many programs import is imported once."""
MAX_OUTPUT_BYTES = 16 * 2**20
"""Of one file: a program that prints for ever ends there."""
ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""What ends all of it; an interrupt is the command's to answer."""
GRACE_S = 3.0
"""How long a rank that was told to end may take to say where it stands."""
STEP_S = 0.01
MAX_STEP_S = 1.0
"""What counts of a longer one: then somebody has stopped all of it."""
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
IFF_UP, SIOCSIFFLAGS = 0x1, 0x8914
_LIBC = ctypes.CDLL(None)


@dataclass(frozen=True, slots=True)
class Program:
    """What is to be run, and how."""

    path: str
    ranks: int
    tree: str
    """A folder of upstream code to import from; empty: none."""
    minis: str
    """The folder of the book's own minis; empty: those that are installed."""
    shims: bool
    """Whether torch answers as Megatron needs it where there is no GPU."""
    timeout_s: float
    folder: str
    """An empty one, for what the ranks leave."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How it ended: what went wrong, if anything did, or what it printed."""

    fault: str = ""
    """What the program raised as it is; what is said here is told, in any language."""
    rank: int = 0
    line: int = 0
    """Of the program; 0 where it is not known."""
    printed: tuple[str, ...] = ()
    """By rank."""
    torch: str = ""
    """The version that it imported, if any."""
    minis: tuple[str, ...] = ()
    """Their files that it imported."""


# --- 1. inside a rank ---


def _be_rank(program: Program, rank: int) -> None:
    """Run the program as one rank; leave in its report what it raised."""
    folder = Path(program.folder)
    for number, name in ((0, os.devnull), (1, f"{rank}.out"), (2, f"{rank}.err")):
        flags = os.O_WRONLY | os.O_CREAT if number else os.O_RDONLY
        os.dup2(os.open(folder / name, flags, 0o600), number)
    most = MAX_OUTPUT_BYTES
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    stack = (folder / f"{rank}.stack").open("w")
    faulthandler.register(signal.SIGTERM, stack, all_threads=False, chain=True)
    os.chdir(folder)
    tempfile.tempdir = None  # as it was found before TMPDIR was another
    os.environ |= {"HOME": program.folder, "TMPDIR": program.folder}
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank)}
    os.environ |= {"WORLD_SIZE": str(program.ranks)}
    # Nobody listens there: the ranks meet over a file.
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    if "torch" in sys.modules:
        _meet_over_file(folder / "store", rank, program.ranks)
    if program.tree:
        sys.path.insert(0, program.tree)
    if program.minis:
        mini_impls.__path__.insert(0, program.minis)
    sys.argv = [program.path]
    warnings.simplefilter("ignore")
    report = folder / f"{rank}.report"
    try:
        _stay_here(program.path, report)
        with _shimmed() if program.shims else nullcontext():
            _run_to_its_end(program.path)
        sys.stdout.flush()
        (folder / f"{rank}.loaded").write_text(json.dumps(_loaded()))
        _leave_together(folder, rank, program.ranks)
    except BaseException as error:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == program.path]
        line = getattr(error, "lineno", None) if not lines else lines[-1]
        said = traceback.format_exception_only(error)[-1].strip()
        _tell(report, line, said.partition("\n")[0])
        with suppress(OSError):
            sys.stdout.flush()
        time.sleep(0.2)  # what neighbours feel of it they tell later
        os._exit(1)


def _run_to_its_end(path: str) -> None:
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as error:
        if error.code:
            raise


def _loaded() -> dict[str, Any]:
    """Return on what the program ran, as ``Ended`` has it."""
    torch = sys.modules.get("torch")
    minis = [name for name in sys.modules if name.startswith("mini_impls.")]
    return {
        "torch": str(torch.__version__) if torch else "",
        "minis": [f"{name.replace('.', '/')}.py" for name in sorted(minis)],
    }


def _leave_together(folder: Path, rank: int, world_size: int) -> None:
    """Wait for the other ranks: a socket closed too soon fails who still reads."""
    (folder / f"{rank}.done").touch()
    until = time.monotonic() + GRACE_S
    while time.monotonic() < until:
        if all((folder / f"{other}.done").exists() for other in range(world_size)):
            return
        time.sleep(STEP_S)


def _meet_over_file(store: Path, rank: int, world_size: int) -> None:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)  # ranks share the cores, and one thread sums in one order
    dist.init_process_group = functools.partial(
        dist.init_process_group,
        store=dist.FileStore(str(store), world_size),
        rank=rank,
        world_size=world_size,
    )


def _shimmed() -> Any:
    import torch

    from mini_impls.compare.shims import ALL, applied

    return applied(ALL, torch.device("cpu"))


def _tell(report: Path, line: int | None, said: str) -> None:
    report.write_text(json.dumps({"line": line or 0, "fault": packed(said)}))


def _stay_here(path: str, report: Path) -> None:
    """Have no socket of Python's reach beyond this machine."""

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if event in ("socket.connect", "socket.sendto"):
            address = arguments[1]
        elif event == "socket.getaddrinfo":
            address = arguments[:2]
        else:
            return
        if isinstance(address, tuple) and address and _is_beyond(address[0]):
            line = _line_of(path, sys._getframe(1))
            host = str(address[0])
            _tell(report, line, Told("connects beyond this machine: {host}", host=host))
            os._exit(1)  # what it would raise, the program could catch

    sys.addaudithook(watch)


def _is_beyond(host: object) -> bool:
    name = host.decode() if isinstance(host, bytes) else str(host or "localhost")
    try:
        return not ipaddress.ip_address(name.partition("%")[0]).is_loopback
    except ValueError:
        return name not in ("localhost", socket.gethostname())


def _line_of(path: str, frame: FrameType | None) -> int | None:
    while frame is not None and frame.f_code.co_filename != path:
        frame = frame.f_back
    return frame.f_lineno if frame else None


# --- 2. around the ranks ---


def run(program: Program) -> Ended:
    """Run all ranks to their end; nothing that they started is left running."""
    try:
        pids = {_fork(program, rank): rank for rank in range(program.ranks)}
        ended = _wait(program, pids)
    finally:
        _end_all()
    return ended


def _fork(program: Program, rank: int) -> int:
    parent, pid = os.getpid(), os.fork()
    if pid:
        return pid
    try:
        end_with_parent()
        for signum in ENDING:
            signal.signal(signum, signal.SIG_DFL)
        if os.getppid() == parent:
            _be_rank(program, rank)
            os._exit(0)  # no teardown: it could wait for another rank
    finally:
        os._exit(1)


def _wait(program: Program, pids: dict[int, int]) -> Ended:
    """Wait until all ranks have ended, one has failed, or time is up."""
    folder, running = Path(program.folder), dict(pids)
    passed, last = 0.0, time.monotonic()
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        now = time.monotonic()
        passed, last = passed + min(now - last, MAX_STEP_S), now
        if pid in running:
            rank = running.pop(pid)
            if status:
                return _failed(folder, rank, status)
        elif not pid and passed > program.timeout_s:
            return _late(program, running)
        elif not pid:
            time.sleep(STEP_S)
    if left := len([*_children()]):
        several = Told("left {count} processes running, and ended with it", count=left)
        one = Told("left 1 process running, and ended with it")
        return Ended(one if left == 1 else several)
    ranks = range(program.ranks)
    texts = [(folder / f"{rank}.out").read_text("utf-8", "replace") for rank in ranks]
    if not (loaded := folder / "0.loaded").is_file():
        return Ended(Told("ended by os._exit, not at its end"))
    return Ended(printed=tuple(texts), **json.loads(loaded.read_text()))


def _failed(folder: Path, rank: int, status: int) -> Ended:
    report = folder / f"{rank}.report"
    if report.is_file():
        told = json.loads(report.read_text())
        return Ended(unpacked(told["fault"]), rank, told["line"])
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        return Ended(Told("was ended by signal {number}", number=-code), rank)
    return Ended(Told("ended with {status}", status=code), rank)


def _late(program: Program, running: dict[int, int]) -> Ended:
    """Return where the first of the ranks stands that have not ended in time."""
    for pid in running:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    rank = min(running.values())
    stack = Path(program.folder, f"{rank}.stack")
    until, found = time.monotonic() + GRACE_S, None
    while found is None and time.monotonic() < until:
        pattern = rf'File "{re.escape(program.path)}", line (\d+)'
        found = re.search(pattern, stack.read_text() if stack.is_file() else "")
        time.sleep(STEP_S)
    said = Told("had not ended after {seconds} s", seconds=f"{program.timeout_s:g}")
    return Ended(said, rank, int(found[1]) if found else 0)


def _end_all() -> None:
    """Kill whatever descends from this process; orphans have become its children."""
    until = time.monotonic() + GRACE_S
    while time.monotonic() < until:
        found = [*_children()]
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not found:
            return
        time.sleep(STEP_S)


def _children() -> Iterator[int]:
    """Yield the children of this process that have not ended."""
    own = str(os.getpid())
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            stat = (folder / "stat").read_text().rpartition(")")[2].split()
            if stat[1] == own and stat[0] != "Z":
                yield int(folder.name)


# --- 3. the process that forks them ---


def leave_network() -> None:
    """Keep the loopback interface alone, where the kernel lets a process do so."""
    user, group = os.getuid(), os.getgid()
    if _LIBC.unshare(CLONE_NEWNET):
        if _LIBC.unshare(CLONE_NEWUSER | CLONE_NEWNET):
            return  # what Python sends is refused all the same
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        up = struct.pack("16sH14x", b"lo", IFF_UP)
        fcntl.ioctl(control, SIOCSIFFLAGS, up)


def _can_leave_network() -> bool:
    """Tell, by a process that tries: some kernels give a network and no right to it."""
    if pid := os.fork():
        return os.waitpid(pid, 0)[1] == 0
    code = 1
    try:
        leave_network()
        code = 0
    finally:
        os._exit(code)


def _end(signum: int, _: object) -> None:
    """Be ended by a signal, and nothing that was started is left over."""
    _end_all()
    os._exit(128 + signum)


def main() -> int:
    """Read programs, a line of JSON each, to the last; answer each by a line."""
    for signum in ENDING:
        signal.signal(signum, _end)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command answers it
    end_with_parent(signal.SIGTERM)
    adopt_orphans()
    if sys.platform == "linux" and _can_leave_network():
        leave_network()
    for line in sys.stdin:
        program = Program(**json.loads(line))
        if "torch" in Path(program.path).read_text() and "torch" not in sys.modules:
            for name in PRELOADED:
                importlib.import_module(f"torch.distributed.{name}")
        ended = run(program)
        plain = {each.name: getattr(ended, each.name) for each in fields(ended)}
        print(json.dumps(plain | {"fault": packed(ended.fault)}), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""What ``sky launch`` is about to rent, read from its command line and task file.

Only options that leave the task as it is written are let through, so that the file says
all. It leaves out every other way to a cloud: those are refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from readerkit.budget.money import Job
from readerkit.content.strict_yaml import parse_yaml
from readerkit.errors import BudgetError, ContentError, JobError

_FLAGS = {"-y", "--yes", "--down", "-r", "--retry-until-up"}
_WITH_VALUE = {"-c", "--cluster", "-n", "--name", "-i", "--idle-minutes-to-autostop"}
_CLUSTER = re.compile(r"[A-Za-z]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_SAME_GPU = {"h100": "h10080gb"}
"""SkyPilot's name of a GPU whose memory the price file names too."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A machine that a command is about to start."""

    sky: str
    """The program, which also takes the machine down."""
    cluster: str
    task: Path

    @property
    def down(self) -> list[str]:
        """The command that takes the machine away."""
        return [self.sky, "down", "--yes", self.cluster]


def read_launch(command: Sequence[str]) -> Launch | None:
    """Return the launch that a ``sky`` command asks for; None for any other command.

    Raises:
        BudgetError: a command to ``sky`` of which it cannot be said what it rents.
    """
    if Path(command[0]).name != "sky":
        return None
    if len(command) < 2 or command[1] != "launch":
        got = " ".join(command[:2])
        raise JobError(
            f"command: got '{got}', expected sky launch -c NAME FILE, the one way to "
            "a cloud whose cost can be checked"
        )
    options, files = _split(command[2:])
    cluster = options.get("-c") or options.get("--cluster") or ""
    if not _CLUSTER.fullmatch(cluster):
        raise JobError(
            f"command: got the cluster {cluster!r}, expected -c NAME, so that there is "
            "something to take down at the end"
        )
    if len(files) != 1 or not files[0].endswith((".yaml", ".yml")):
        raise JobError(
            f"command: got {' '.join(files) or 'no task'}, expected one task file, "
            "such as lab-02.yaml"
        )
    return Launch(command[0], cluster, Path(files[0]))


def _split(arguments: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    options: dict[str, str] = {}
    files: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        name, joined, value = word.partition("=")
        if not word.startswith("-"):
            files.append(word)
        elif name in _WITH_VALUE:
            options[name] = value if joined else rest.pop(0) if rest else ""
        elif word not in _FLAGS:
            known = ", ".join(sorted(_FLAGS | _WITH_VALUE))
            raise JobError(
                f"command: got the option {word}, expected one of {known}; what is "
                "rented stands in the task file alone"
            )
    return options, files


def check_task(launch: Launch, job: Job) -> None:
    """Raise where a task would rent anything but what the job was priced for.

    Raises:
        BudgetError: a missing or unclear file, or another GPU, number or kind.
    """
    task = _read_task(launch.task)
    resources = task.get("resources")
    if not isinstance(resources, Mapping):
        raise BudgetError(f"{launch.task}: got no resources, expected accelerators")
    for key in ("any_of", "ordered", "instance_type"):
        if key in resources:
            raise BudgetError(
                f"{launch.task}: got resources.{key}, expected accelerators alone, "
                "which a price can be held against"
            )
    gpu, count = _accelerators(launch.task, resources.get("accelerators"))
    nodes = task.get("num_nodes", 1)
    if isinstance(nodes, bool) or not isinstance(nodes, int):
        raise BudgetError(f"{launch.task}: num_nodes: got {nodes!r}, expected a number")
    kind = "spot" if resources.get("use_spot", False) is True else "on-demand"
    for option, got, expected in (
        ("gpu", gpu, job.price.gpu),
        ("instances", str(count * nodes), str(job.instances)),
        ("kind", kind, job.price.kind),
    ):
        if _plain(got) != _plain(expected):
            raise BudgetError(
                f"{launch.task}: got {got}, expected {expected}, which was priced; "
                f"change the task, or --{option}"
            )


def _read_task(path: Path) -> Mapping[str, Any]:
    try:
        document = parse_yaml(path.read_bytes(), str(path))
    except OSError as error:
        raise JobError(f"{path}: cannot be read: {error.strerror}") from None
    except ContentError as error:
        raise JobError(str(error)) from None
    if document.faults:
        raise JobError(str(ContentError(document.faults)))
    if not isinstance(document.value, Mapping):
        raise JobError(f"{path}: got no mapping, expected a SkyPilot task")
    return document.value


def _accelerators(path: Path, value: Any) -> tuple[str, int]:
    if isinstance(value, Mapping) and len(value) == 1:
        [(name, count)] = value.items()
        value = f"{name}:{count}"
    if isinstance(value, str):
        name, _, number = value.partition(":")
        if name.strip() and re.fullmatch(r"[1-9][0-9]{0,4}", number or "1"):
            return name.strip(), int(number or "1")
    raise BudgetError(
        f"{path}: accelerators: got {value!r}, expected a name and a number, such as "
        "RTX4090:2"
    )


def _plain(name: str) -> str:
    letters = re.sub("[^a-z0-9]", "", name.lower())
    return _SAME_GPU.get(letters, letters)

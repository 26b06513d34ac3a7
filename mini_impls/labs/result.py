"""What every lab writes down: the numbers, and where they were measured."""

import json
import os
import platform
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from readerkit.upstreams.store import blob_id, write_atomically

MODEL = "mini_impls.model"
"""What every lab trains."""


def environment(backend: str) -> dict[str, Any]:
    """Return what a reader of a time must know about the machine it was taken on."""
    on_gpu = backend == "nccl"
    return {
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "platform": platform.platform(),
        "backend": backend,
        "device": torch.cuda.get_device_name(0) if on_gpu else platform.machine(),
        "devices": torch.cuda.device_count() if on_gpu else os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 2),
    }


def made_from(module: Any) -> dict[str, str]:
    """Return the ids of the files that are measured: a mini's own, and its model."""
    loaded = sorted(n for n in sys.modules if n.startswith((module.__name__, MODEL)))
    files = (Path(str(sys.modules[name].__file__)) for name in loaded)
    return {f"mini_impls/{file.name}": blob_id(file.read_bytes()) for file in files}


def write(
    path: Path,
    lab: str,
    module: Any,
    command: str,
    backend: str,
    numbers: Mapping[str, Any],
) -> None:
    """Write a lab's result beside `path` and move it there in one step."""
    result = {
        "lab": lab,
        "made": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": command,
        "made_from": made_from(module),
        "environment": environment(backend),
        **numbers,
    }
    write_atomically(path, (json.dumps(result, indent=1) + "\n").encode())

"""How long a plan takes and for how many variants; what a cold command costs."""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import time
from pathlib import Path

from readerkit.app.catalog import find_cluster, find_model
from readerkit.estimate.plan import plan
from readerkit.estimate.plan_search import PlanRequest
from readerkit.estimate.shape import Shape

QUESTIONS = [
    ("llama-2-70b", 64, 1024, 4096),
    ("llama-3-70b", 2048, 4096, 8192),
    ("mixtral-8x22b", 4096, 8192, 32768),
    ("qwen3-30b-a3b", 6144, 12288, 32768),
]


COLD = [
    "memory --model llama-2-7b --dp 8",
    "comm all-reduce 10GB --ranks 8",
    "bubble -p 4 -m 16",
    "flops --model gpt2 --batch 8",
    "step --model llama-2-70b --dp 2 --tp 8 --pp 4",
    "plan --model llama-2-70b --gpus 64",
    "checkpoint --params 1T",
    "list",
]


def cpu_seconds(*command: str) -> float:
    """Return the least CPU time of ten processes; bytecode and catalog are warm."""
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": ""}

    def once() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        user = after.ru_utime - before.ru_utime
        return user + after.ru_stime - before.ru_stime

    return min(once() for _ in range(10))


def cold_commands() -> dict[str, float]:
    """Return how many times ``import click`` each command costs."""
    click = cpu_seconds(sys.executable, "-c", "import click")
    readerkit = str(Path(sys.executable).parent / "readerkit")
    return {
        asked: round(cpu_seconds(readerkit, "estimate", *asked.split()) / click, 2)
        for asked in COLD
    }


def main() -> None:
    rows = []
    for name, gpus, batch, sequence in QUESTIONS:
        question = PlanRequest(
            shape=Shape.parse(find_model(name)),
            cluster=find_cluster("dgx-h100"),
            gpus=gpus,
            global_batch=batch,
            sequence=sequence,
        )
        wall, busy = time.perf_counter(), time.process_time()
        made = plan(question)
        rows.append(
            {
                "model": name,
                "gpus": gpus,
                "variants": made.examined,
                "layouts that fit": made.fitting,
                "wall_s": round(time.perf_counter() - wall, 2),
                "cpu_s": round(time.process_time() - busy, 2),
            }
        )
    report = {"python": platform.python_version(), "runs": rows}
    report["times import click"] = cold_commands()
    json.dump(report, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()

"""How long a plan takes and for how many variants; what a cold command costs."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
import sys
import time
from pathlib import Path

from readerkit.app.catalog import find_cluster, find_model
from readerkit.estimate.plan import plan
from readerkit.estimate.plan_cuts import PlanRequest
from readerkit.estimate.shape import Shape

QUESTIONS = [
    ("llama-2-70b", 64, 1024, 4096),
    ("llama-3-70b", 2048, 4096, 8192),
    ("mixtral-8x22b", 4096, 8192, 32768),
    ("qwen3-30b-a3b", 6144, 12288, 32768),
]


COLD = [
    "nccl --ranks 64 --nodes 8",
    "comm all-reduce 10GB --ranks 8",
    "bubble -p 4 -m 16",
    "checkpoint --params 1T",
    "list",
    "flops --model gpt2 --batch 8",
    "layer --model gpt2",
    "largest --gpu h100-80gb --dp 8",
    "buckets --model llama-2-7b --dp 64",
    "memory --model llama-2-7b --dp 8",
    "lint --model llama-2-70b --tp 8 --pp 16 --microbatches 4",
    "step --model llama-2-70b --dp 2 --tp 8 --pp 4",
    "plan --model llama-2-70b --gpus 64",
]
ROUNDS = 15


def seconds(*command: str) -> tuple[float, float]:
    """Return the wall time and the CPU time of a process; bytecode is kept."""
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": ""}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.stderr:
        sys.exit(f"{' '.join(command)}: {done.stderr.decode()}")
    user = after.ru_utime - before.ru_utime
    return wall, user + after.ru_stime - before.ru_stime


def cold_commands() -> None:
    """Print how many times ``import click`` each costs: the least, run in turn."""
    readerkit = str(Path(sys.executable).parent / "readerkit")
    bare = (sys.executable, "-c", "import click")
    commands = {asked: (readerkit, "estimate", *asked.split()) for asked in COLD}
    taken = [
        {name: seconds(*each) for name, each in ({"": bare} | commands).items()}
        for _ in range(ROUNDS + 1)
    ][1:]
    least = {
        name: [min(each[name][clock] for each in taken) for clock in (0, 1)]
        for name in taken[0]
    }
    print(f"\n`import click`: {least[''][0] * 1000:.0f} ms\n")
    print("| command | wall, times `import click` | CPU |\n|---|---|---|")
    for name in COLD:
        ratios = [f"{a / b:.2f}" for a, b in zip(least[name], least[""], strict=True)]
        print(f"| `{name}` | {' | '.join(ratios)} |")


def plans() -> None:
    """Print what a plan takes of the processor, the least of three."""
    print("| model | GPUs | variants | layouts that fit | CPU s | for 10^5 variants |")
    print("|---|---|---|---|---|---|")
    for name, gpus, batch, sequence in QUESTIONS:
        question = PlanRequest(
            shape=Shape.parse(find_model(name)),
            cluster=find_cluster("dgx-h100"),
            gpus=gpus,
            global_batch=batch,
            sequence=sequence,
        )
        times = []
        for _ in range(3):
            start = time.process_time()
            made = plan(question)
            times.append(time.process_time() - start)
        took = min(times)
        print(
            f"| {name} | {gpus:,} | {made.examined:,} | {made.fitting:,} | {took:.2f} "
            f"| {took / made.examined * 1e5:.2f} |"
        )


def main() -> None:
    print(f"CPython {platform.python_version()}\n")
    plans()
    cold_commands()


if __name__ == "__main__":
    main()

"""How long a plan takes, and for how many variants."""

from __future__ import annotations

import json
import platform
import sys
import time

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
    json.dump({"python": platform.python_version(), "runs": rows}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()

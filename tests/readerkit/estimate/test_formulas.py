"""What is printed beside a number is what was computed: every item of every command."""

from __future__ import annotations

import json

import pytest

from readerkit.app.catalog import load_models
from readerkit.errors import EstimateError
from readerkit.estimate.collectives import HIERARCHICAL
from readerkit.estimate.item import Item
from readerkit.estimate.layout import CP_KINDS
from readerkit.estimate.schedules import CHUNKED, SOURCES
from readerkit.estimate.states import PRECISIONS
from readerkit.estimate.zero_bubble import ORDERS, check_sizes
from readerkit.model.expression import evaluate
from tests.helpers import run

pytestmark = pytest.mark.sampled

MODELS = sorted(load_models())
LAYERS = {name: load_models()[name].layers for name in MODELS}
EXPERTS = [name for name in MODELS if load_models()[name].experts]
OPERATIONS = (
    *("all-reduce", "reduce-scatter", "all-gather", "broadcast", "reduce"),
    *("all-to-all", "send-recv", "gather", "scatter", "hypercube"),
)

OF_A_MODEL = [
    "memory --zero 0",
    "memory --dp 8 --zero 0 --flash --vocab-multiple 128",
    "memory --dp 8 --zero 1/2 --gpu h100-80gb --recompute selective --micro-batch 2",
    "memory --dp 8 --zero 3 --recompute full --gpu-memory 16GB --reserve 0",
    "memory --inference --batch 4 --gpu h100-80gb --weight-bytes 0.5",
    "memory --inference",
    "comm --zero 0",
    "comm --dp 8 --zero 0",
    "comm --dp 8 --zero 1 --microbatches 4 --sync --vocab-multiple 128",
    "comm --dp 7 --zero 2 --microbatches 4",
    "comm --dp 8 --zero 3 --precision mixed-16",
    "flops --batch 64",
    "flops --batch 64 --recompute full --attention causal --gpus 8 --gpu h100-80gb "
    "--mfu 0.4 --tokens 2T --usd-per-gpu-hour 2.5",
    "flops --batch 64 --recompute selective --gpus 64 --peak-tflops 312 --step-s 9999",
]
OF_A_SCHEDULE = [
    f"{command} --model llama-2-70b --schedule {schedule} {layout}"
    for command in ("memory", "comm")
    for schedule in SOURCES
    for layout in (
        [
            "--tp 8 --pp 8 --dp 2 --microbatches 16",
            "--tp 16 --pp 4 --recompute full --microbatches 8",
        ]
        if schedule not in CHUNKED
        else [
            "--tp 8 --pp 4 --virtual-stages 2 --microbatches 16 --dp 2",
            "--tp 2 --pp 2 --virtual-stages 4 --microbatches 4 --cp 2 --zero 1 --flash",
        ]
    )
] + [
    f"memory --model gpt3-175b --schedule {schedule} --pp 8 --microbatches 16 --tp 4"
    for schedule in SOURCES
    if schedule not in CHUNKED
]
OF_EXPERTS = [
    f"{command} {layout}"
    for command in ("memory", "comm")
    for layout in (
        "--dp 16 --ep 4 --tp 2 --zero 1",
        "--dp 8 --ep 4 --tp 2 --pp 2 --microbatches 8 --zero 1 --recompute selective",
        "--dp 8 --cp 2 --ep 4 --zero 3 --flash --microbatches 2 --recompute full",
    )
]
OF_REPORTS = [
    f"memory --convention {tool} --model {model}"
    for tool in ("megatron-report", "cookbook")
    for model in (
        "gpt3-175b --tp 8 --pp 8 --dp 2 --microbatches 16 --sequence 2048",
        "deepseek-v3 --tp 2 --pp 4 --last-layers 13 --dp 8 --ep 8 --zero 3",
        "llama-2-7b --recompute selective --tp 2 --cp 2 --zero 0 --precision mixed-16",
    )
] + [
    f"memory --convention deepspeed --zero {stage} --dp 16 {more}"
    for stage, more in (
        (2, "--params 7B"),
        (2, "--params 7B --offload optimizer-cpu"),
        (3, "--model llama-2-7b --offload states-nvme"),
        (3, "--params 7B --largest-layer 32M --precision mixed-18"),
    )
]
OF_STATES = [
    f"memory --params {params} --dp 48 --zero {zero} --precision {name} --gpu l4"
    for params in ("7.5B", "1e18", "1234567")
    for zero in (0, 1, 2, 3)
    for name in PRECISIONS
] + ["memory --params 7B --dp 6 --tp 3 --pp 7 --zero 1/2"]
OF_COLLECTIVES = [
    f"comm {operation} {size} --ranks {ranks} --bandwidth 50GB --latency-us 9.6"
    for operation in OPERATIONS
    for ranks in (1, 2, *((8, 1024) if operation == "hypercube" else (7, 1000)))
    for size in ("10GB", "1000003")
] + [
    *(f"comm {each} 10GB --ranks 8 --bandwidth 50GB" for each in OPERATIONS),
    "comm all-reduce 0 --ranks 8 --bandwidth 50GB --latency-us 3",
    *(
        f"comm {each} 1GB --ranks {ranks} --bandwidth 5GB --algorithm tree"
        for each in ("all-reduce", "broadcast", "reduce")
        for ranks in (1, 2, 7, 100)
    ),
    "comm all-reduce 1GB --ranks 9 --bandwidth 50GB --algorithm naive",
    *(
        f"comm {each} 1000003 --ranks {ranks} --nodes {nodes} --bandwidth 50GB "
        "--inside-bandwidth 450GB --latency-us 9.6 --inside-latency-us 3.4 "
        "--algorithm hierarchical"
        for each in OPERATIONS
        if each in HIERARCHICAL
        for ranks, nodes in ((32, 4), (8, 1), (4, 4), (21, 3))
    ),
    *(
        f"comm all-reduce 1000003 --ranks 7 --compression --baseline {each} {more}"
        for each in ("fp32", "bf16", "fp16")
        for more in ("", "--top-k 0.03 --rank 8 --rows 100 --columns 333")
    ),
    *(
        f"comm --compute-ms {compute} --comm-ms {other} --overlap {share}"
        for compute, other in ((1000, 200), (100, 900), (3, 0.7))
        for share in (0, 0.5, 1)
    ),
]


def can_run(schedule: str, p: int, m: int) -> bool:
    try:
        if schedule in ORDERS:
            check_sizes(schedule, p, m)
    except EstimateError:
        return False
    return True


OF_BUBBLES = [
    f"bubble -p {p} -m {m} --schedule {schedule} {times}"
    for p, m in ((1, 1), (2, 3), (4, 16), (4, 2), (8, 15), (3, 7))
    for schedule in (*SOURCES, "all")
    for times in ("", "--forward 2 --backward 3", "--backward 2 --weight 1")
    if can_run(schedule, p, m) and schedule not in CHUNKED
    if "--weight" not in times or schedule not in ("gpipe", "1f1b")
] + [
    f"bubble -p {p} -m {m} -v {v} --schedule {schedule}"
    for p, m, v in ((2, 2, 2), (4, 16, 4), (8, 64, 3))
    for schedule in (*CHUNKED, "all")
]
OF_RUNS = [
    "checkpoint --model bloom-176b --precision mixed-16",
    "checkpoint --params 1T --mtbf-hours 3 --gpus 16384 --write-bandwidth 0.5GB/s",
    "checkpoint --params 1T --mtbf-hours 3 --write-bandwidth 100GB/s --restart-s 60",
    "checkpoint --params 7B --gpu-mtbf-hours 50000 --gpus 16384",
    *(f"buckets --model {name} --dp 3 --tp 2" for name in ("gpt2", *EXPERTS)),
    *(f"layer --model {name} --tp 2" for name in ("gpt3-175b", *EXPERTS)),
    "layer --model gpt2 --no-flash --recompute selective --micro-batch 3",
    "largest --gpu t4 --dp 3 --tp 2 --pp 5 --zero 1/2",
    "step --model llama-2-70b --dp 2 --tp 8 --pp 4 --cp 2 --microbatches 64",
    "step --model mixtral-8x22b --dp 16 --ep 8 --tp 4 --zero 3 --no-flash",
    "flops --model gpt3-175b --batch 8 --gpus 8 --gpu h100-80gb --tokens-per-s 1e3 "
    "--before-s 9 --tokens 300B",
    "flops --model gpt2 --batch 8 --gpus 8 --gpu t4 --tflops-per-gpu 10",
    "flops --model gpt2 --batch 8 --tokens 1B",
    "comm all-to-all 1GB --ranks 8",
    "nccl --ranks 64 --nodes 8",
    "nccl --ranks 8 --link pci",
    "nccl --ranks 16 --nodes 4 --operation all-gather --cpu amd",
    *(
        f"comm --model llama-2-70b --cp 8 --sequence 65536 --cp-kind {kind} --tp 1"
        for kind in CP_KINDS
    ),
]
COMMANDS = {
    "runs": OF_RUNS,
    **{
        name: [f"{each} --model {name}" for each in OF_A_MODEL]
        + [
            f"{each} --model {name}"
            + " --last-layers 30" * (layers % 2 and "--pp" in each)
            for each in OF_EXPERTS
            if name in EXPERTS
        ]
        for name, layers in LAYERS.items()
    },
    "reports": OF_REPORTS,
    "schedules": OF_A_SCHEDULE,
    "states": OF_STATES,
    "collectives": OF_COLLECTIVES,
    "bubbles": OF_BUBBLES,
}


def printed_sums(text: str) -> list[str]:
    """Return the last formula that a table prints under each of its items.

    A formula begins with four spaces and ``=``, and goes on with six.
    """
    found: list[list[str]] = []
    on = False
    for row in text.splitlines():
        if row.startswith("    = "):
            found[-1].append(row[6:])
            on = True
        elif on and row.startswith("      "):
            found[-1][-1] += " " + row.strip()
        else:
            on = False
            if not row.startswith(" "):
                found.append([])
    return [each[-1] for each in found if each]


def check_explained(estimate, command) -> None:
    """Each name of a formula is a symbol with a meaning, or another item beside it."""
    values = {item["name"]: item["value"] for item in estimate["items"]}
    assert len(values) == len(estimate["items"]), command
    for item in estimate["items"]:
        assert item["unit"] and item["source"] and item["convention"], item
        for name, value in item["inputs"].items():
            assert name in item["formula"], (command, item)
            if not estimate["symbols"].get(name):
                assert values[name] == value, (command, item, name)


@pytest.mark.parametrize("of", COMMANDS)
def test_every_substitution_has_the_value_beside_it(of, capsys):
    """On the terminal and in JSON; none is prose, or empty, or unexplained."""
    for command in COMMANDS[of]:
        plain = run(capsys, "estimate", *command.split(), "--json")
        assert plain.code in (0, 1) and not plain.err, (command, plain.err)
        estimates = json.loads(plain.out)["estimates"]
        items = [item for estimate in estimates for item in estimate["items"]]
        for estimate in estimates:
            check_explained(estimate, command)
        for item in items:
            assert evaluate(item["substitution"]) == item["value"], (command, item)
            assert type(evaluate(item["substitution"])) is type(item["value"])
        text = run(capsys, "estimate", *command.split()).out
        shown = printed_sums(text)
        assert len(shown) == len(items), command
        for item, sum_ in zip(items, shown, strict=True):
            assert evaluate(sum_) == item["value"], (command, item)


def test_a_number_without_its_formula_is_no_item():
    with pytest.raises(TypeError, match="total: got 12, expected a Quantity"):
        Item("total", 12, "bytes", "a count")

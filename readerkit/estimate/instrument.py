"""One setting asked four ways, as the commands would: memory, bubble, traffic, step.

The site's page translates this to JavaScript, with all that it reaches. So whatever it
says is computed by what the commands compute with; a setting that they refuse is
refused here, in the same words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from readerkit.errors import ReaderkitError
from readerkit.estimate.bubble import Pipeline
from readerkit.estimate.bubble_estimate import estimate_bubble
from readerkit.estimate.defaults import CLUSTER, PRECISION, RESERVE, SCHEDULE, SEQUENCE
from readerkit.estimate.hardware import Cluster, Gpu
from readerkit.estimate.item import Estimate
from readerkit.estimate.layout import Layout
from readerkit.estimate.link_time import check_nodes
from readerkit.estimate.memory_estimates import HELD, estimate_training
from readerkit.estimate.parameters_estimate import estimate_parameters
from readerkit.estimate.setup import Setup
from readerkit.estimate.shape import Shape, fit_sequence
from readerkit.estimate.step_estimate import estimate_step
from readerkit.estimate.traffic_estimate import IN_ALL, estimate_step_traffic
from readerkit.wording.meant_name import choose

QUESTIONS = ("memory", "bubble", "comm", "step")
"""What is asked of a setting: each is a command of ``readerkit estimate``."""


class Dials(NamedTuple):
    """What can be set: each field is an option of the commands, and their default."""

    model: str = "llama-2-7b"
    gpu: str = "h100-80gb"
    cluster: str = CLUSTER
    """Of nodes with this GPU; empty: none that is known."""
    dp: int = 1
    tp: int = 1
    pp: int = 1
    cp: int = 1
    ep: int = 1
    zero: int = 1
    micro_batch: int = 1
    microbatches: int = 1
    sequence: int | None = None
    """Of tokens; None: the default, or what a table of positions has."""
    virtual_stages: int = 1
    schedule: str = SCHEDULE
    recompute: str = "none"
    precision: str = PRECISION
    sequence_parallel: bool = True
    flash: bool = True


_OF_LAYOUT = (
    *("dp", "tp", "pp", "cp", "ep", "zero", "micro_batch", "microbatches"),
    *("virtual_stages", "schedule", "recompute", "sequence_parallel", "flash"),
)


class Shipped(NamedTuple):
    """What ships under a name, in plain values."""

    models: Mapping[str, Mapping[str, Any]]
    """Sizes of each."""
    gpus: Mapping[str, Mapping[str, Any]]
    clusters: Mapping[str, Mapping[str, Any]]


class Answered(NamedTuple):
    """What a command says of a setting: its estimates, or why it refuses."""

    question: str
    command: str
    estimates: tuple[Estimate, ...] = ()
    refusal: str = ""


def answers(setting: Dials, known: Shipped) -> list[Answered]:
    """Return what each command says of a setting; of no cluster there is no step."""
    asked = [name for name in QUESTIONS if name != "step" or setting.cluster]
    return [answer(name, setting, known) for name in asked]


def answer(question: str, setting: Dials, known: Shipped) -> Answered:
    """Return what one command says of a setting."""
    command = command_of(question, setting)
    try:
        return Answered(question, command, _ask(question, setting, known))
    except ReaderkitError as error:
        return Answered(question, command, (), str(error))


def command_of(question: str, setting: Dials) -> str:
    """Return the command line that asks the same."""
    usual = Dials._field_defaults
    words = ["readerkit", "estimate", question]
    if question == "bubble":
        words += ["-p", str(setting.pp), "-m", str(setting.microbatches)]
        if setting.virtual_stages != 1:
            words += ["-v", str(setting.virtual_stages)]
        return " ".join([*words, *_schedule(setting)])
    words += ["--model", setting.model]
    if question == "memory":
        words += ["--gpu", setting.gpu]
    if question == "step":
        words += ["--cluster", setting.cluster]
    for name, value in setting._asdict().items():
        option = name.replace("_", "-")
        if name in ("model", "gpu", "cluster", "schedule") or value == usual[name]:
            continue
        if value is False:
            words.append(f"--no-{option}")
        else:
            words += [f"--{option}", str(value)]
    return " ".join([*words, *_schedule(setting)])


def _schedule(setting: Dials) -> list[str]:
    """Return a schedule's option: with chunks, the commands would take another."""
    if setting.schedule == "1f1b" and setting.virtual_stages == 1:
        return []
    return ["--schedule", setting.schedule]


def _ask(question: str, setting: Dials, known: Shipped) -> tuple[Estimate, ...]:
    """Return the estimates of a command.

    Raises:
        ReaderkitError: what the command would refuse.
    """
    if question == "bubble":
        return (estimate_bubble(_pipeline(setting)),)
    memory = _gpu(setting.gpu, known).memory_bytes if question == "memory" else 0
    model = choose("model", setting.model, known.models)
    shape = Shape.parse(known.models[model])
    cluster = _cluster(setting.cluster, known) if question == "step" else None
    layout = _layout(setting, shape)
    convention = setting.precision
    if cluster is not None:
        check_nodes(cluster, layout)
        setup = Setup(
            shape=shape, cluster=cluster, convention=convention, reserve=RESERVE
        )
        return (estimate_step(setup, layout),)
    if question == "comm":
        return (estimate_step_traffic(shape, layout, convention=convention),)
    return (
        estimate_parameters(shape, tensor_parallel=layout.tp),
        estimate_training(
            shape, layout, convention=convention, gpu_bytes=memory, reserve=RESERVE
        ),
    )


def _pipeline(setting: Dials) -> Pipeline:
    return Pipeline.parse(
        {
            "stages": setting.pp,
            "microbatches": setting.microbatches,
            "forward": 1,
            "backward": 1,
            "weight": 1,
            "schedule": setting.schedule,
            "virtual_stages": setting.virtual_stages,
        }
    )


def _layout(setting: Dials, shape: Shape) -> Layout:
    values = setting._asdict()
    sizes: dict[str, Any] = {name: values[name] for name in _OF_LAYOUT}
    sizes["sequence"] = fit_sequence(shape, setting.sequence, SEQUENCE)
    return Layout.parse(sizes)


def _gpu(name: str, known: Shipped) -> Gpu:
    meant = choose("GPU", name, known.gpus)
    return Gpu.parse(meant, known.gpus[meant])


def _cluster(name: str, known: Shipped) -> Cluster:
    meant = choose("cluster", name, known.clusters)
    entry = known.clusters[meant]
    return Cluster.parse(meant, entry, {entry["gpu"]: _gpu(entry["gpu"], known)})


def drawn(question: str, estimate: Estimate) -> list[str]:
    """Return the names of the items that a bar shows: what adds up to the whole."""
    names = [item.name for item in estimate.items]
    if question == "memory":
        return [name for name in names if name in HELD]
    if question == "comm":
        return [name for name in IN_ALL.values() if name in names]
    if question == "step":
        return names[: names.index("hidden communication")]
    return []

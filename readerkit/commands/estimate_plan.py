"""``readerkit estimate plan`` and ``lint``: which layout, and what ails one."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from readerkit.commands.estimate_options import (
    COUNT,
    SIZE,
    EstimateCommand,
    fit_sequence,
    flash_option,
    layout_options,
    model_options,
    need_shape,
    options,
    print_json,
    take_layouts,
)
from readerkit.commands.options import json_option
from readerkit.terminal.completing import names
from readerkit.terminal.folded import tell

if TYPE_CHECKING:
    from readerkit.estimate.hardware import Cluster
    from readerkit.estimate.lint import Finding
    from readerkit.estimate.plan import Plan, Ranked
    from readerkit.estimate.step_time import Assumptions, StepTime

cluster_options = options(
    click.option(
        "--cluster",
        shell_complete=names("clusters"),
        metavar="NAME",
        default="dgx-h100",
        help="A cluster that ships (default dgx-h100), or FILE.yaml.",
    ),
    click.option(
        "--gpu-memory", type=SIZE, help="Memory of a GPU, instead of the cluster's."
    ),
    click.option(
        "--kernel-efficiency",
        type=float,
        help="Share of peak of matrix kernels (default: the GPU's).",
    ),
    click.option(
        "--memory-passes",
        type=float,
        default=8.0,
        help="How often a kept activation crosses the GPU's memory (default 8).",
    ),
    click.option(
        "--link-efficiency",
        type=float,
        default=0.7,
        help="Share of a link's bandwidth that collectives reach (default 0.7).",
    ),
    click.option(
        "--overlap",
        type=float,
        default=0.5,
        help="Share of data-parallel traffic that compute hides (default 0.5).",
    ),
    click.option(
        "--reserve",
        type=float,
        default=0.1,
        help="Share of a GPU kept free (default 0.1, an assumption).",
    ),
)


def take_cluster(given: dict[str, Any]) -> tuple[Cluster, Assumptions]:
    """Take the cluster's options out of ``given``."""
    from dataclasses import replace

    from readerkit.app.catalog import find_cluster
    from readerkit.estimate.checks import check_amount, check_reserve
    from readerkit.estimate.step_time import Assumptions

    cluster, memory = find_cluster(given.pop("cluster")), given.pop("gpu_memory")
    if memory is not None:
        memory = check_amount("GPU memory", memory)
        cluster = replace(cluster, gpu=replace(cluster.gpu, memory_bytes=memory))
    names = ("kernel_efficiency", "memory_passes", "link_efficiency", "overlap")
    assumptions = Assumptions.parse(**{name: given.pop(name) for name in names})
    check_reserve(given["reserve"])
    return cluster, assumptions


@click.command(
    cls=EstimateCommand, short_help="Layouts for a model on a cluster, ranked."
)
@model_options
@click.option("--gpus", type=COUNT, required=True, help="How many.")
@click.option(
    "--global-batch", type=COUNT, default=1024, help="Sequences of a step (1024)."
)
@click.option("--sequence", type=COUNT, help="Tokens of one (4096).")
@click.option("--precision", default="mixed-18", help="Bytes per parameter (mixed-18).")
@click.option(
    "--vocab-multiple", type=COUNT, default=1, help="Padding of the vocabulary."
)
@flash_option
@click.option("--tokens", type=COUNT, help="Of the whole training: gives days.")
@click.option("--days", type=float, help="How many there are.")
@click.option("--top", type=COUNT, default=5, help="How many layouts to show.")
@cluster_options
@json_option
def plan(as_json: bool, **given: Any) -> None:
    """Rank every way to cut a model over a cluster, and say why the others fell out.

    \b
    Example:
        readerkit estimate plan --model llama-2-70b --gpus 64 --cluster dgx-h100
        readerkit estimate plan --model mixtral-8x22b --gpus 256 --tokens 2T --days 30
    """
    from readerkit.estimate.plan import plan as make_plan
    from readerkit.estimate.plan_search import PlanRequest

    shape = need_shape(given)
    cluster, assumptions = take_cluster(given)
    question = PlanRequest(
        shape=shape,
        cluster=cluster,
        gpus=given["gpus"],
        global_batch=given["global_batch"],
        sequence=fit_sequence(shape, given["sequence"], 4096),
        convention=given["precision"],
        reserve=given["reserve"],
        flash=given["flash"],
        assumptions=assumptions,
        tokens=given["tokens"],
        deadline_days=given["days"],
    )
    made = make_plan(question, top=given["top"])
    if as_json:
        print_json(_plain_plan(made))
    else:
        from readerkit.render.plan_table import plan_table

        tell(plan_table(made))
    if not made.ranked:
        raise click.exceptions.Exit(1)


def _plain_time(time: StepTime) -> dict[str, Any]:
    return asdict(time) | {
        "communication_share": time.communication_share,
        "bubble_share": time.bubble_share,
    }


def _plain_ranked(each: Ranked) -> dict[str, Any]:
    return {
        "layout": asdict(each.layout),
        "memory_bytes": each.memory.total,
        "memory": asdict(each.memory) | {"params": each.memory.params},
        "time": _plain_time(each.time),
        "reasons": list(each.reasons),
    }


def _plain_plan(made: Plan) -> dict[str, Any]:
    return {
        "gpus": made.question.gpus,
        "cluster": made.question.cluster.name,
        "usable_bytes": made.question.usable_bytes,
        "convention": made.question.convention,
        "assumptions": asdict(made.question.assumptions)
        | {"kernel_efficiency_of_gpu": made.question.cluster.gpu.kernel_efficiency},
        "memory_reason": made.memory_reason,
        "time_reason": made.time_reason,
        "examined": made.examined,
        "fitting": made.fitting,
        "ranked": [_plain_ranked(each) for each in made.ranked],
        "rejected": [asdict(each) for each in made.rejected],
    }


@click.command(
    cls=EstimateCommand, short_help="Anti-patterns of a layout, each by number."
)
@model_options
@layout_options
@click.option(
    "--no-sync/--sync",
    default=True,
    help="Gradients are summed once in a step (default), or after each microbatch.",
)
@cluster_options
@json_option
def lint(as_json: bool, **given: Any) -> None:
    """Check a layout for what is known to go wrong; exit 1 where something is found.

    \b
    Example:
        readerkit estimate lint --model llama-2-70b --tp 8 --pp 16 --microbatches 4
        readerkit estimate lint --model llama-2-7b --dp 128 --global-batch 64
    """
    from readerkit.estimate.lint import Setting, check_batch, check_nodes
    from readerkit.estimate.lint import lint as find

    shape = need_shape(given)
    cluster, assumptions = take_cluster(given)
    convention = given.pop("precision")
    findings: list[Finding] = []
    batch, dp = given["global_batch"], given["dp"]
    if batch is not None and dp is not None and 0 < batch < dp:
        tiny = check_batch(global_batch=batch, dp=dp)
        findings += [tiny] if tiny else []
        given["global_batch"] = None  # weigh the rest with one sequence for each
    for layout in take_layouts(given, shape):
        check_nodes(cluster, layout)
        setting = Setting(
            shape=shape,
            layout=layout,
            cluster=cluster,
            assumptions=assumptions,
            convention=convention,
            reserve=given["reserve"],
            no_sync=given["no_sync"],
        )
        findings += find(setting)
    if as_json:
        print_json({"findings": [asdict(finding) for finding in findings]})
    else:
        from readerkit.render.plan_table import finding_table

        tell(finding_table(findings))
    if findings:
        raise click.exceptions.Exit(1)

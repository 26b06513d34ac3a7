"""``readerkit estimate plan``: which layout, and a published one beside it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from readerkit.commands.cluster_options import (
    check_links,
    cluster_options,
    link_options,
    take_cluster,
)
from readerkit.commands.estimate_options import (
    flash_option,
    model_options,
    need_shape,
    refuse_others,
    vocab_option,
)
from readerkit.commands.options import json_option
from readerkit.commands.quantity_options import (
    COUNT,
    EstimateCommand,
    Several,
    count,
    option,
    real,
    word,
)
from readerkit.commands.shown_options import (
    OptionGroup,
    language_option,
    show_answer,
    show_sourced,
    spoken,
)
from readerkit.estimate.defaults import (
    GLOBAL_BATCH,
    PRECISION,
    SEQUENCE,
    TRIED_SCHEDULES,
)
from readerkit.estimate.schedules import SOURCES
from readerkit.terminal.as_json import print_json
from readerkit.terminal.completing import names
from readerkit.terminal.folded import columns

if TYPE_CHECKING:
    from readerkit.estimate.plan import Plan, Ranked
    from readerkit.estimate.runs import Compared, CutPlace
    from readerkit.estimate.step_time import StepTime


@click.command(cls=EstimateCommand)
@model_options
@OptionGroup(
    count("gpus", "How many."),
    count("global-batch", f"Sequences of a step ({GLOBAL_BATCH}).", GLOBAL_BATCH),
    count("sequence", f"Tokens of one ({SEQUENCE})."),
    word("precision", f"Bytes per parameter ({PRECISION}).", PRECISION),
    vocab_option,
    flash_option,
    option(
        Several(click.STRING),
        "schedule",
        f"Schedules to try, with commas, or all of {', '.join(SOURCES)} "
        f"(default {','.join(TRIED_SCHEDULES)}).",
        ",".join(TRIED_SCHEDULES),
        shell_complete=names("schedule", several=True),
    ),
    option(
        Several(click.STRING),
        "offload",
        "Offloads to try, with commas, or all (default none).",
        "none",
        shell_complete=names("offload", several=True),
    ),
    option(
        Several(COUNT),
        "etp",
        "Tensor-parallel ranks of an expert to try, with commas, or all (0: tp).",
        "0",
    ),
    count("tokens", "Of the whole training: gives days."),
    real("days", "How many there are."),
    count("top", "How many layouts to show.", 5),
    word(
        "against",
        "A published run, or all: what is predicted for it beside what it measured, "
        "and the place of its cut. Takes no model.",
        shell_complete=names("runs"),
    ),
)
@cluster_options
@link_options
@language_option
@json_option
def plan(as_json: bool, **given: Any) -> None:
    """Rank every way to cut a model over a cluster, and say why the others fell out.

    \b
    Example:
        readerkit estimate plan --model llama-2-70b --gpus 64 --cluster dgx-h100
        readerkit estimate plan --model mixtral-8x22b --gpus 256 --tokens 2T --days 30
        readerkit estimate plan --model llama-2-70b --gpus 64 --schedule all
        readerkit estimate plan --model gpt3-175b --gpus 16 \\
            --offload optimizer-cpu --pcie-bandwidth 25GB/s
        readerkit estimate plan --model llama-2-70b --gpus 64 --lang es
        readerkit estimate plan --against llama-3.1-405b-16384
        readerkit estimate plan --against all --json
    """
    if given["against"] is not None:
        allowed = {"against"} | cluster_options.names | link_options.names
        refuse_others("a published run", frozenset(allowed - {"cluster"}))
        _compare(as_json, given)
        return
    if given["gpus"] is None:
        raise click.UsageError("--gpus: how many? Or --against RUN, which says it")
    from readerkit.estimate.plan import plan as make_plan
    from readerkit.estimate.plan_cuts import PlanRequest
    from readerkit.estimate.shape import fit_sequence

    if given["days"] is not None and given["tokens"] is None:
        raise click.UsageError("--days needs --tokens: of how much training?")
    tried = _tried(given)
    check_links(given, *tried["offloads"])
    shape = need_shape(given)
    cluster, assumptions = take_cluster(given)
    question = PlanRequest(
        shape=shape,
        cluster=cluster,
        gpus=given["gpus"],
        global_batch=given["global_batch"],
        sequence=fit_sequence(shape, given["sequence"], SEQUENCE),
        convention=given["precision"],
        reserve=given["reserve"],
        flash=given["flash"],
        assumptions=assumptions,
        tokens=given["tokens"],
        deadline_days=given["days"],
        **tried,
    )
    made = make_plan(question, top=given["top"])
    if as_json:
        print_json(_plain_plan(made))
    else:
        from readerkit.render.plan_table import plan_table

        show_answer(plan_table(made, *spoken(), columns()))
    if not made.ranked:
        raise click.exceptions.Exit(1)


def _tried(given: dict[str, Any]) -> dict[str, Any]:
    """Return what the options name to be tried, each once and in their order."""
    from readerkit.estimate.schedules import SOURCES
    from readerkit.estimate.states import OFFLOAD

    every = {"schedule": tuple(SOURCES), "offload": tuple(OFFLOAD), "etp": None}
    tried = {name: given[name] for name in every}
    tried |= {name: every[name] for name in every if tried[name] == "all"}
    return {f"{name}s": each for name, each in tried.items()}


def _compare(as_json: bool, given: dict[str, Any]) -> None:
    """Print published runs beside what is predicted for them."""
    from dataclasses import replace

    from readerkit.app.catalog import find_run, load_runs
    from readerkit.estimate.runs import compare, tally
    from readerkit.render.runs_table import runs_table

    own = click.get_current_context().obj
    whole = given["against"] == "all"
    runs = load_runs(own) if whole else [find_run(given["against"], own)]
    check_links(given, *(run.layout.offload for run in runs))
    memory, given["gpu_memory"] = given["gpu_memory"], None
    _, assumptions = take_cluster(given)
    if memory is not None:
        runs = [replace(run, cluster=run.cluster.with_memory(memory)) for run in runs]
    compared = [compare(run, assumptions, given["reserve"]) for run in runs]
    halves = tally(compared)
    if as_json:
        print_json(
            {
                "assumptions": assumptions._asdict(),
                "reserve": given["reserve"],
                "runs": [_plain_compared(each) for each in compared],
                "halves": {half: each._asdict() for half, each in halves.items()},
            }
        )
    else:
        show_sourced(runs_table(compared, halves if whole else {}, *spoken()))


def _plain_compared(each: Compared) -> dict[str, Any]:
    run = each.run
    return {
        "run": run.name,
        "source": run.source,
        "half": run.half or None,
        "cluster": run.cluster.name,
        "layout": run.layout._asdict(),
        "assumed": run.assumed or None,
        "measured_s": run.seconds,
        "predicted_s": each.predicted,
        "error": each.error,
        "same_means": _plain_place(each.same_means),
        "any_means": _plain_place(each.any_means),
    }


def _plain_place(place: CutPlace) -> dict[str, Any]:
    best = place.best and place.best._asdict()
    return place._asdict() | {"best": best}


def _plain_time(time: StepTime) -> dict[str, Any]:
    return time._asdict() | {
        "communication_share": time.communication_share,
        "bubble_share": time.bubble_share,
    }


def _plain_ranked(each: Ranked) -> dict[str, Any]:
    return {
        "layout": each.layout._asdict(),
        "memory_bytes": each.memory.total,
        "memory": each.memory._asdict() | {"params": each.memory.params},
        "time": _plain_time(each.time),
        "reasons": list(each.reasons),
    }


def _plain_plan(made: Plan) -> dict[str, Any]:
    return {
        "gpus": made.question.gpus,
        "cluster": made.question.cluster.name,
        "usable_bytes": made.question.usable_bytes,
        "convention": made.question.convention,
        "assumptions": made.question.assumptions._asdict()
        | {"kernel_efficiency_of_gpu": made.question.cluster.gpu.kernel_efficiency},
        "conventions": {"mfu": made.question.mfu_convention(made.question.flash)},
        "memory_reason": made.memory_reason,
        "time_reason": made.time_reason,
        "searched": made.question.searched,
        "examined": made.examined,
        "fitting": made.fitting,
        "ranked": [_plain_ranked(each) for each in made.ranked],
        "rejected": [asdict(each) for each in made.rejected],
    }

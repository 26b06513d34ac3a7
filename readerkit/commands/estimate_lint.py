"""``readerkit estimate lint``: what is known to go wrong with a layout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from readerkit.commands.cluster_options import (
    check_links,
    cluster_options,
    link_options,
    take_cluster,
)
from readerkit.commands.estimate_options import (
    layout_options,
    model_options,
    need_shape,
    sync_option,
    take_layouts,
)
from readerkit.commands.options import json_option
from readerkit.commands.quantity_options import EstimateCommand
from readerkit.commands.shown_options import language_option, show_answer, spoken
from readerkit.terminal.as_json import print_json
from readerkit.terminal.folded import columns

if TYPE_CHECKING:
    from readerkit.estimate.findings import Finding


@click.command(cls=EstimateCommand)
@model_options
@layout_options
@sync_option
@cluster_options
@link_options
@language_option
@json_option
def lint(as_json: bool, **given: Any) -> None:
    """Check a layout for what is known to go wrong; exit 1 where something is found.

    \b
    Example:
        readerkit estimate lint --model llama-2-70b --tp 8 --pp 16 --microbatches 4
        readerkit estimate lint --model llama-2-7b --dp 128 --global-batch 64
        readerkit estimate lint --model llama-2-7b --dp 128 --lang es
    """
    from readerkit.estimate.findings import Setting
    from readerkit.estimate.link_time import check_nodes
    from readerkit.estimate.lint import check_batch
    from readerkit.estimate.lint import lint as find

    check_links(given, given["offload"])
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
        print_json({"findings": [finding._asdict() for finding in findings]})
    else:
        from readerkit.render.plan_table import finding_table

        show_answer(finding_table(findings, spoken()[0], columns()))
    if findings:
        raise click.exceptions.Exit(1)

"""``readerkit estimate nccl``: the latency that NCCL's tuner reckons with."""

from __future__ import annotations

from typing import Any

import click

from readerkit.commands.options import json_option
from readerkit.commands.quantity_options import EstimateCommand, count, word
from readerkit.commands.shown_options import OptionGroup, brief_option, show


@click.command(cls=EstimateCommand)
@OptionGroup(
    count("ranks", "Of the collective.", required=True),
    count("nodes", "That they are on (1).", 1),
    word("operation", "all-reduce (default), all-gather or reduce-scatter."),
    word("link", "In the node: nvlink (default) or pci."),
    word("cpu", "Whose posts to the network: intel (default) or amd."),
)
@brief_option
@json_option
def nccl(as_json: bool, brief: bool, **given: Any) -> None:
    """Print the latency of each algorithm of NCCL 2.20.3, before any bytes.

    \b
    Example:
        readerkit estimate nccl --ranks 64 --nodes 8
    """
    from readerkit.estimate.nccl import estimate_nccl_latency

    known = {name: value for name, value in given.items() if value is not None}
    show([estimate_nccl_latency(**known)], as_json=as_json, brief=brief)

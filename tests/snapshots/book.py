"""A small book with one of everything that a page can show."""

from __future__ import annotations

import json
from collections.abc import Mapping

from readerkit.evidence.record import (
    PARAMETERS,
    Event,
    EventMatch,
    ExecutedLine,
    Held,
    Limit,
    Lit,
    Peak,
    RankEvents,
    Record,
    Times,
    Total,
    Verdict,
    Wire,
    distance_line,
)
from readerkit.upstreams.store import blob_id
from tests.helpers import SAMPLE, SampleBook

END = distance_line(PARAMETERS[-1])
MINI = '''\
"""Sums over ranks."""

import torch.distributed as dist


def close(y, group):
    dist.all_reduce(y, group=group)
    return y
'''
MINIS = {
    "name": "minis",
    "title": "The minis",
    "folder": "mini_impls",
    "include": ["mini_impls/*.py"],
}
MIRROR = """\
id: closing
title: How a block is closed
idea: "Sum at the end: $y = \\\\sum_r y_r$."
concepts: [all-reduce]
sections:
- title: The sum
  relation: simplified
  why: One collective, no switch.
  upstream: [close]
  mini: [{file: mini_impls/sums.py, symbol: close}]
  leaves_out:
  - {what: sequence parallelism, why: Another mini has it.}
  events:
  - {phase: forward, op: all_reduce, comparisons: [sums_sample]}
"""
CHAPTER = """\
# Why *sum*

Each rank holds a part, $y_r$. See [[all-reduce]].

```note close
```
"""
FILES: dict[str, str | bytes] = {
    "mini_impls/sums.py": MINI,
    "annotations/comparisons.yaml": (
        "- {name: sums_sample, mini: sums, upstream: sample, title: Sums beside it}\n"
    ),
    "annotations/mirrors/closing.yaml": MIRROR,
    "annotations/sample/linear.es.yaml": (
        "close: {title: El colectivo que cierra, decision: Un conmutador lo elige.}\n"
    ),
    "site/pages/chapters/01-sums.md": CHAPTER,
    "site/pages/labs/00.md": "# Lab 00: a price\n\nHow much?\n",
    "site/pages/labs/00.solution.md": "# Lab 00: what it was\n\nForty-two.\n",
}


def add_upstream(book: SampleBook, upstream: Mapping[str, object]) -> None:
    """Name one more upstream in a book."""
    listed = book.path("upstreams.yaml")
    known = json.loads(listed.read_text("utf-8"))
    listed.write_text(json.dumps([*known, upstream]), "utf-8")


def record_of(book: SampleBook, name: str) -> str:
    """Return a record of one rank, one all-reduce on either side."""
    theirs = ExecutedLine("sample", "lib/linear.py", 17, "Linear.forward")
    ours = ExecutedLine("minis", "mini_impls/sums.py", 7, "close")
    caller = ExecutedLine("sample", "lib/linear.py", 23, "step")
    launcher = ExecutedLine("minis", "mini_impls/launch.py", 122, "_with_group")

    def event(site: ExecutedLine, stack: int) -> Event:
        return Event(
            "forward", "all_reduce", "dp", "float32", 1024, 0, 1, site, stack, site,
            None, "sum", 1, 0, None, None,
        )  # fmt: skip

    return Record(
        comparison=name,
        mini="sums",
        upstream="sample",
        made="2026-01-01 00:00:00",
        command="readerkit compare sums",
        world_size=2,
        backend="gloo",
        steps=3,
        warm_up_steps=1,
        traced_step=2,
        watched_steps=5,
        pins={"sample": book.commit},
        blobs={
            "sample": {"lib/linear.py": blob_id(SAMPLE.encode())},
            "minis": {"mini_impls/sums.py": blob_id(MINI.encode())},
        },
        program={},
        versions={"torch": "2"},
        environment={"cores": "2"},
        work={"layers": 2},
        sizes={"world": 2},
        shims=(),
        losses={"mini": ((4.0, 2.0, 1.0),), "upstream": ((4.0, 2.0, 1.5),)},
        verdicts=(
            Verdict("loss", None, 1.0, 1.5, 0.5, 1.0, "agree", "sums in another order"),
            Verdict(END, None, 3.0, 3.0, 0.25, 1.0, "agree", "sums in another order"),
        ),
        limits=(Limit("unseen", "order between ranks", "no common clock"),),
        events=(
            RankEvents(
                0,
                (event(ours, 0),),
                (event(theirs, 1),),
                (EventMatch(0, 0, "matched"),),
                None,
                ((ours, launcher), (theirs, caller, launcher)),
            ),
        ),
        totals=(
            Total(0, "mini", "all_reduce", 1, 1024, 1024, "4 B x 256", 1024.0),
            Total(0, "upstream", "all_reduce", 1, 1024, 1024, "4 B x 256", 1024.0),
        ),
        wire=(Wire(0, "mini", 1100, 1024.0, "1 all_reduce"),),
        held=(Held(0, "mini", "parameters", 1024, 1024, "4 B x 256"),),
        peaks=(Peak(0, "mini", "forward", 2048, {"parameters": 1024}),),
        times=(Times(0, (0.1, 0.2, 0.1), (0.2, 0.2, 0.2)),),
        lit=(
            Lit("minis", "mini_impls/sums.py", "", {"0-4": "7-8"}),
            Lit("sample", "lib/linear.py", "8-9", {"0-4": "13-14,17-18"}),
        ),
        pipeline=None,
    ).to_text()

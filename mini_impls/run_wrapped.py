"""A demonstration that is looked at: afterwards, or while it runs."""

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mini_impls.recorder import Recorder, gather
from mini_impls.run_rates import measure_rates
from mini_impls.run_table import table
from mini_impls.run_trace import drawn, write
from mini_impls.run_watch import WatchingRecorder, leave_for_a_page
from readerkit.wording.fold import width_of

if TYPE_CHECKING:
    from mini_impls.launch import Rank

Demo = Callable[["Rank", argparse.Namespace], None]


@dataclass(frozen=True, slots=True)
class Traced:
    """A demonstration that is recorded, as long as it takes steps."""

    demo: Demo
    path: Path

    def __call__(self, rank: "Rank", args: argparse.Namespace) -> None:
        """Run it; say where the time went, and write the trace of all ranks."""
        rates = measure_rates(rank, sees_memory=True)
        with Recorder(is_on=True, rates=rates) as recorder:
            self.demo(replace(rank, recorder=recorder), args)
        # Half a million events are drawn where they are, not sent to the first rank.
        trace = drawn(recorder.take(rank.rank, rank.device))
        traces = gather(trace, rank.group)
        if traces is not None:
            # First, for a disk may be full: what was measured is told all the same.
            told = table([each.summary for each in traces], width_of(sys.stdout))
            rank.say(f"\n{told}")
            write(self.path, traces)
            rank.say(f"trace of all ranks: {self.path}")


@dataclass(frozen=True, slots=True)
class Watched:
    """A demonstration whose steps are shown as they are taken."""

    demo: Demo

    def __call__(self, rank: "Rank", args: argparse.Namespace) -> None:
        """Run it; say in the end where the time of the last step seen went."""
        rates = measure_rates(rank, sees_memory=False)
        recorder = WatchingRecorder(rank=rank, rates=rates)
        self.demo(replace(rank, recorder=recorder), args)
        rank.status.show_below(())
        seen = gather(recorder.summary(), rank.group)
        if seen is not None:
            told = table(seen, width_of(sys.stdout))
            rank.say(f"\nThe last step that was looked at:\n{told}")
            leave_for_a_page(seen, recorder.last_step, has_ended=True)

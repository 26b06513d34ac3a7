"""What a lint finds, and what it looks at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from readerkit.estimate.layout import Layout
from readerkit.estimate.setup import Setup
from readerkit.estimate.step_traffic import dp_step_traffic


class Finding(NamedTuple):
    """One anti-pattern in a layout."""

    code: str
    what: str
    number: str
    """What condemns it."""
    instead: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting(Setup):
    """A layout and what it is to run on."""

    layout: Layout

    def sent(self, layout: Layout) -> float:
        """Return the bytes that data parallelism sends with another layout."""
        traffics = dp_step_traffic(self.shape, layout, self.kept, no_sync=self.no_sync)
        return float(sum(traffic.sent_bytes for traffic in traffics))

"""What an estimate takes where nobody says: for commands, pages and formulas alike."""

from __future__ import annotations

PRECISION = "mixed-18"
"""Bytes that are kept for a parameter, by the name of ``states.PRECISIONS``."""
SEQUENCE = 4096
"""Tokens of a sequence; fewer where a model has no more positions."""
RESERVE = 0.1
"""Share of a GPU that is kept free: an assumption."""
CLUSTER = "dgx-h100"
SCHEDULE = "1f1b"
TRIED_SCHEDULES = (SCHEDULE, "interleaved")
"""Schedules that a plan tries: what Megatron-LM has, and torch."""
GLOBAL_BATCH = 1024
"""Sequences of a step that is planned."""
MEMORY_PASSES = 8.0
"""How often a kept activation crosses the GPU's memory."""
LINK_SHARE = 0.7
"""Share of a link's bandwidth that collectives reach."""
OVERLAP = 0.5
"""Share of data-parallel traffic that compute hides."""

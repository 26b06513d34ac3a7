"""The schedules of a pipeline by their names: whose each is, and what kind."""

from __future__ import annotations

SOURCES = {
    "gpipe": "Huang et al. 1811.06965, section 2.3",
    "1f1b": "Narayanan et al. 2104.04473, section 2.2.1",
    "interleaved": "Narayanan et al. 2104.04473, section 2.2.2",
    "zb-h1": "Qi et al. 2401.10241, section 2 and table 2",
    "zb-h2": "Qi et al. 2401.10241, section 2 and table 2",
    "zb-interleaved": "Qi et al. 2401.10241, table 2, over v chunks in the order of "
    "torch's ScheduleInterleavedZeroBubble",
    "zb-v": "Qi et al. 2401.10241, section 6",
    "dualpipe": "DeepSeek-V3 2412.19437, table 2",
}
"""Every schedule; those that ``mini_impls`` lacks are run by ``zero_bubble``."""
CHUNKED = ("interleaved", "zb-interleaved")
"""Those whose ranks have any number of chunks."""
STAGGERED = ("zb-h2", "zb-v")
"""Those that let a rank begin its next step while others still end this one."""
UNSYNCHRONIZED = (
    "ranks begin and end one after another, which is no idle time here: where the "
    "optimizer waits for all of them, as for a norm of all gradients, the step is as "
    "much longer (Qi et al. 2401.10241, section 4)"
)
"""What is to be known of their steps."""
STAGES_OF_RANK = {"dualpipe": 2}
"""Where a rank has several of which a microbatch meets one: one of each direction."""

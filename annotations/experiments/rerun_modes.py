"""Which words core takes for a mode of the rerun machine."""

import json

from megatron.core.rerun_state_machine import RerunMode

RANKS = 1
UPSTREAMS = ["megatron"]


def taken(word):
    try:
        return RerunMode(word).name
    except ValueError as error:
        return str(error)


print("trainer =", json.dumps([taken(w) for w in ("disabled", "validate_results")]))
print("third =", json.dumps(taken("report_stats")))
print("core =", json.dumps(taken("report_determinism_stats")))

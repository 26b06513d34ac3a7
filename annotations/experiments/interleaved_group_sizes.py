"""Which groups of microbatches the interleaved schedule accepts, with p = 4."""

import json
from types import SimpleNamespace

from megatron.core.pipeline_parallel import schedules as s
from torch import nn

RANKS = 1
UPSTREAMS = ["megatron"]


class Config(SimpleNamespace):
    def __getattr__(self, name):
        return None


def answer(m, size):
    p, one = (SimpleNamespace(size=lambda n=n: n, rank=int) for n in (4, 1))
    config = Config(hidden_size=8, microbatch_group_size_per_vp_stage=size)
    peer = SimpleNamespace(pp_group=p, config=config)
    groups = SimpleNamespace(tp=one, cp=one, dp_cp=one, pp=p, embd=None, pos_embd=None)
    model = [nn.Linear(8, 8), nn.Linear(8, 8)]
    model[0].config, model[0].model_type = config, None
    peer.virtual_pipeline_model_parallel_size = 2
    given = {"data_iterator": [None] * 2, "seq_length": 4, "micro_batch_size": 1}
    given |= {"p2p_communicator": peer, "pg_collection": groups}
    given |= {"forward_step_func": None, "model": model, "num_microbatches": m}
    try:
        s.forward_backward_pipelining_with_interleaving(**given)
    except AttributeError:  # The peer cannot receive: the sizes were accepted.
        return "accepted"
    except (ValueError, RuntimeError) as error:
        return type(error).__name__


print("m8_groups_of_4 =", json.dumps(answer(8, 4)))
print("m10_groups_of_4 =", json.dumps(answer(10, 4)))
print("m10_groups_of_5 =", json.dumps(answer(10, 5)))
print("m10_groups_of_6 =", json.dumps(answer(10, 6)))

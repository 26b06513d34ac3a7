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


pairs = (8, 4), (10, 4), (10, 5), (10, 6), (10, 3), (10, 8), (10, 12), (3, 3), (3, 4)
for m, size in pairs:
    print(f"m{m}_groups_of_{size} =", json.dumps(answer(m, size)))

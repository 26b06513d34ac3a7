"""What torch's agent does when one worker fails, and when a node waits to join."""

import json
import os
import time
from pathlib import Path
from unittest.mock import Mock

import torch.distributed as dist
from torch.distributed.elastic.agent.server import WorkerSpec
from torch.distributed.elastic.agent.server import local_elastic_agent as local
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
from torch.distributed.elastic.rendezvous import api

RANKS = 1
told, waits, here = Path("told"), Path("waits"), api.RendezvousStoreInfo("", 0)


def next_rendezvous():
    waits.unlink(missing_ok=True)
    (told / str(len([*told.iterdir()]))).mkdir()
    return api.RendezvousInfo(dist.HashStore(), 0, 1, here)


def work():
    start, rank = len([*told.iterdir()]) - 1, os.environ["RANK"]
    (told / f"{start}/{rank}").write_text(os.environ["TORCHELASTIC_RESTART_COUNT"])
    assert (start, rank) != (0, "1")
    waits.write_text("") if start == 1 else None
    time.sleep(60 if start < 2 else 0)


told.mkdir()
nodes = Mock(next_rendezvous=next_rendezvous, num_nodes_waiting=waits.exists)
nodes.get_run_id.return_value = nodes.get_backend.return_value = "here"
spec = WorkerSpec("", 2, nodes, entrypoint=work, max_restarts=1)
agent = local.LocalElasticAgent(spec, DefaultLogsSpecs(), start_method="fork")
print("ended =", json.dumps([agent.run().state.value, agent._remaining_restarts]))
counts = {p.name: [int(q.read_text()) for q in p.iterdir()] for p in told.iterdir()}
print("counts =", json.dumps(dict(sorted(counts.items()))))

"""Whether workers that are started again find keys of the workers before them."""

import json
import os
from pathlib import Path

import torch.distributed as dist
from torch.distributed.elastic.agent.server import WorkerSpec
from torch.distributed.elastic.agent.server import local_elastic_agent as local
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
from torch.distributed.elastic.rendezvous import c10d_rendezvous_backend as c10d
from torch.distributed.elastic.rendezvous import dynamic_rendezvous as dynamic

RANKS = 1
HERE = "127.0.0.1"


def work():
    store = next(dist.rendezvous("env://"))[0]
    if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        store.set("address", "of the first start")
        raise SystemExit(1)
    Path("found").write_text(json.dumps(store.check(["address"])))


def run(name, disable):
    os.environ["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = disable
    store = dist.TCPStore(HERE, 0, is_master=True, wait_for_workers=False)
    backend = c10d.C10dRendezvousBackend(store, name)
    handler = dynamic.DynamicRendezvousHandler.from_backend(
        name, store, backend, 1, 1, local_addr=HERE
    )
    spec = WorkerSpec("worker", 1, handler, entrypoint=work, max_restarts=1)
    local.LocalElasticAgent(spec, DefaultLogsSpecs(), start_method="fork").run()
    handler.shutdown()
    print(name, "=", Path("found").read_text())


run("shared", "0")
run("not_shared", "1")

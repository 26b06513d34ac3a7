"""An elastic agent: who is started again, how often, and what is left."""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from mini_impls import recover_agent
from mini_impls.recover_agent import (
    ElasticAgent,
    FolderRendezvous,
    WorkerSpec,
    WorkerState,
    run_once,
)
from tests.helpers import ROOT
from tests.processes import is_gone, wait_for

SOON_S = 0.01


def worker(worker, folder, plan):
    """Note this start; do what the plan says of it, and end."""
    name = f"{worker.store.name}-{worker.rank}"
    told = (worker.rank, worker.world_size, worker.local_rank, worker.restart_count)
    aside = folder / f"{name}.part"
    aside.write_text(json.dumps([*told, os.getpid()]))
    aside.rename(folder / f"{name}.start")
    start = int(worker.store.name.rpartition("-")[2])
    act = plan.get((start, worker.rank), "end")
    if act == "join":
        FolderRendezvous(folder.parent / "nodes").join("b", 1)
    if act == "stay deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        (folder / f"{name}.deaf").touch()
    if act == "die when the other is deaf":
        while not list(folder.glob("*.deaf")):
            time.sleep(SOON_S)
        os.kill(os.getpid(), signal.SIGKILL)
    if act == "leave and die":
        FolderRendezvous(folder.parent / "nodes").leave("b")
    if act in ("die", "leave and die"):
        os.kill(os.getpid(), signal.SIGKILL)
    if act == "leave early":
        raise SystemExit(3)
    if act != "end":
        time.sleep(60)


def make_spec(tmp_path, plan, *, max_restarts=2, nodes=(("a", 2),)):
    """Return what an agent is to run, in a folder of its own."""
    for name in ("nodes", "starts"):
        (tmp_path / name).mkdir()
    handler = FolderRendezvous(tmp_path / "nodes")
    for name, size in nodes:
        handler.join(name, size)
    return WorkerSpec(
        entrypoint=worker,
        rdzv_handler=handler,
        args=(tmp_path / "starts", plan),
        max_restarts=max_restarts,
        monitor_interval=SOON_S,
        start_method="fork",
    )


def starts(tmp_path):
    """Return what each start told its workers, in order, and all their ids."""
    told, pids = {}, []
    for path in sorted((tmp_path / "starts").glob("*.start")):
        number = int(path.name.split("-")[1])
        *row, pid = json.loads(path.read_text())
        told.setdefault(number, []).append(tuple(row))
        pids.append(pid)
    assert all(map(is_gone, pids)), "a worker was left"
    return [told[number] for number in sorted(told)]


def test_workers_that_end_well_are_started_once(tmp_path):
    result = ElasticAgent(make_spec(tmp_path, {})).run()
    assert (result.state, result.failures) == (WorkerState.SUCCEEDED, {})
    assert (result.restarts, result.rendezvous) == (0, 1)
    assert starts(tmp_path) == [[(0, 2, 0, 0), (1, 2, 1, 0)]]


@pytest.mark.parametrize("death", ["die", "leave early"])
def test_when_one_worker_dies_all_are_started_again(tmp_path, death):
    plan = {(1, 1): death, (1, 0): "stay"}
    result = ElasticAgent(make_spec(tmp_path, plan)).run()
    assert result.state is WorkerState.SUCCEEDED
    assert (result.restarts, result.rendezvous) == (1, 2)
    told = starts(tmp_path)
    assert told[-1] == [(0, 2, 0, 1), (1, 2, 1, 1)]
    assert [restarts for *_, restarts in told[0]] == [0] * len(told[0])


def test_after_the_last_restart_the_run_has_failed(tmp_path):
    plan = {(start, 0): "die" for start in (1, 2, 3)}
    plan |= {(start, 1): "stay" for start in (1, 2, 3)}
    result = ElasticAgent(make_spec(tmp_path, plan, max_restarts=2)).run()
    assert result.state is WorkerState.FAILED
    assert result.failures == {0: -signal.SIGKILL}
    assert (result.restarts, result.rendezvous) == (2, 3)
    starts(tmp_path)


def test_a_node_that_comes_restarts_all_and_uses_up_no_restart(tmp_path):
    plan = {(1, 0): "join", (1, 1): "stay"}
    spec = make_spec(tmp_path, plan, max_restarts=0)
    result = ElasticAgent(spec).run()
    assert result.state is WorkerState.SUCCEEDED
    assert (result.restarts, result.rendezvous) == (0, 2)
    told = starts(tmp_path)
    assert told[-1] == [(0, 3, 0, 0), (1, 3, 1, 0), (2, 3, 0, 0)]


def test_a_node_that_goes_costs_a_restart_and_leaves_fewer(tmp_path):
    plan = {(1, 2): "leave and die", (1, 0): "stay", (1, 1): "stay"}
    spec = make_spec(tmp_path, plan, nodes=(("a", 2), ("b", 1)))
    result = ElasticAgent(spec).run()
    assert result.state is WorkerState.SUCCEEDED
    assert (result.restarts, result.rendezvous) == (1, 2)
    assert starts(tmp_path)[-1] == [(0, 2, 0, 1), (1, 2, 1, 1)]


def test_nodes_may_come_and_go_while_somebody_looks(tmp_path):
    handler, done = FolderRendezvous(tmp_path), threading.Event()

    def come_and_go():
        while not done.is_set():
            handler.join("b", 1)
            handler.leave("b")

    other = threading.Thread(target=come_and_go)
    other.start()
    try:
        waiting = {handler.num_nodes_waiting() for _ in range(5000)}
    finally:
        done.set()
        other.join()
    assert waiting <= {0, 1}


def test_a_node_that_comes_as_another_goes_waits_too(tmp_path):
    handler = FolderRendezvous(tmp_path)
    handler.join("a", 2)
    handler.next_rendezvous()
    handler.leave("a")
    assert handler.num_nodes_waiting() == 0
    handler.join("b", 1)
    assert handler.num_nodes_waiting() == 1


def test_a_worker_that_does_not_heed_is_made_to_end(tmp_path, monkeypatch):
    stop = ElasticAgent._stop_workers
    monkeypatch.setattr(ElasticAgent, "_stop_workers", lambda self: stop(self, 0.2))
    plan = {(1, 0): "stay deaf", (1, 1): "die when the other is deaf"}
    result = ElasticAgent(make_spec(tmp_path, plan)).run()
    assert result.state is WorkerState.SUCCEEDED
    assert len(starts(tmp_path)) == 2


def test_no_worker_is_left_when_the_agent_is_interrupted(tmp_path, monkeypatch):
    spec = make_spec(tmp_path, {(1, 0): "stay", (1, 1): "stay"})

    def interrupt(self):
        wait_for(lambda: len(list((tmp_path / "starts").glob("*.start"))) == 2, 30)
        raise KeyboardInterrupt

    monkeypatch.setattr(ElasticAgent, "_monitor_workers", interrupt)
    with pytest.raises(KeyboardInterrupt):
        ElasticAgent(spec).run()
    assert len(starts(tmp_path)) == 1


def test_plainly_one_death_ends_the_run(tmp_path):
    spec = make_spec(tmp_path, {(1, 1): "die", (1, 0): "stay"})
    with pytest.raises(RuntimeError, match=r"ranks that failed: \{1: -9\}"):
        run_once(spec)
    assert len(starts(tmp_path)) == 1


def test_without_a_node_nothing_starts(tmp_path):
    with pytest.raises(RuntimeError, match=r"no node in .*nodes"):
        ElasticAgent(make_spec(tmp_path, {}, nodes=())).run()


def test_each_start_has_a_rendezvous_of_its_own(tmp_path):
    spec = make_spec(tmp_path, {(1, 0): "die"})
    ElasticAgent(spec).run()
    stores = {p.name.rpartition("-")[0] for p in (tmp_path / "starts").glob("*.start")}
    assert len(stores) == 2
    assert recover_agent.WorkerSpec is WorkerSpec


# --- a training, killed ---


def losses(text):
    return re.findall(r"elastic step (\d): loss ([\d.]+)", text)


def test_a_training_that_is_killed_and_joined_ends_as_one_process(capfd):
    from mini_impls.demos.recover_elastic import run_elastic

    run_elastic(argparse.Namespace(world=2, steps=3))
    out = capfd.readouterr().out
    assert re.findall(r"(\d) workers, from step (\d)", out) == [
        ("2", "0"),
        ("2", "1"),
        ("3", "2"),
    ]
    assert [step for step, _ in losses(out)] == ["0", "1", "2"]
    [apart] = re.findall(r"from one process: parameter (\S+)", out)
    assert float(apart) < 1e-4
    assert out.endswith("SUCCEEDED: 3 starts, of which 1 for a worker that died\n")


def under_torchrun(*options):
    """Return what two workers of torchrun said, and how it ended."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [
        *(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"),
        *("--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}"),
        *("--rdzv-id", "test", "--local-addr", "127.0.0.1", "--max-restarts", "1"),
        *("-m", "mini_impls.recover", "--steps", "3", *options),
    ]
    env = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
        "GLOO_SOCKET_IFNAME": "lo",
    }
    return subprocess.run(
        command, env=env, capture_output=True, text=True, check=False, timeout=150
    )


@pytest.mark.slow
def test_torchruns_agent_starts_the_same_training_again(tmp_path):
    killed = under_torchrun("--directory", str(tmp_path / "saved"), "--kill", "1:2")
    assert killed.returncode == 0, killed.stderr
    assert re.findall(r"start (\d) of", killed.stdout) == ["0", "1"]
    assert re.findall(r"workers, from step (\d)", killed.stdout) == ["0", "2"]
    assert [step for step, _ in losses(killed.stdout)] == ["0", "1", "2"]
    [apart] = re.findall(r"from one process: parameter (\S+)", killed.stdout)
    assert float(apart) < 1e-4

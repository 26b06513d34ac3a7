"""The trace sees what a program does, and nothing that it does not."""

import linecache
import sys
from concurrent.futures import ThreadPoolExecutor

import torch
import torch.distributed as dist
from torch import nn

import mini_impls.gpus
from mini_impls import ddp
from mini_impls.compare.callbacks import pooled_too
from mini_impls.compare.lines import LineTrace
from mini_impls.compare.memory import LiveMemory, held_bytes
from mini_impls.compare.places import Places, get_roots
from mini_impls.compare.stacks import Stacks
from mini_impls.compare.trace import CollectiveTrace
from mini_impls.model import GPTConfig, build_model, compute_loss, make_batch
from mini_impls.recorder import written_bytes


def _trace(rank):
    stacks = Stacks(Places(get_roots(None)))
    return CollectiveTrace(stacks, {rank.group.group_name: "dp"})


def _collectives(rank):
    whole, part = torch.ones(8), torch.ones(4)
    trace = _trace(rank)
    with trace.watching([]):
        dist.all_reduce(whole, op=dist.ReduceOp.MAX, group=rank.group)
        trace.set_phase("backward")
        first = dist.all_reduce(part, group=rank.group, async_op=True)
        second = dist.broadcast(whole, group_src=1, group=rank.group, async_op=True)
        torch.mm(torch.ones(2, 2), torch.ones(2, 2))
        second.wait()
        first.wait()
        dist.all_gather_single(whole, part, group=rank.group)
        trace.set_phase("optimizer")
        dist.reduce_scatter_single(part, whole, group=rank.group)
        dist.barrier(rank.group)
    dist.all_reduce(whole, group=rank.group)  # after the end: not seen
    return trace.events()


def test_every_collective_is_seen_as_it_was_issued(pool2):
    for events in pool2.run(_collectives):
        seen = [(e.phase, e.op, e.payload_bytes, e.issue, e.wait) for e in events]
        assert seen == [
            ("forward", "all_reduce", 32, 0, 1),
            ("backward", "all_reduce", 16, 2, 5),
            ("backward", "broadcast", 32, 3, 4),
            ("backward", "all_gather", 32, 6, 7),
            ("optimizer", "reduce_scatter", 32, 8, 9),
            ("optimizer", "barrier", 0, 10, 11),
        ]
        reductions = ["max", "sum", None, None, "sum", None]
        assert [e.reduction for e in events] == reductions
        assert [e.peer for e in events] == [None, None, 1, None, None, None]
        assert {(e.group, e.dtype) for e in events[:-1]} == {("dp", "float32")}
        assert events[-1].group == "dp"
        assert [e.products_hidden for e in events] == [0, 1, 1, 0, 0, 0]


def _functional(rank):
    from torch.distributed import _functional_collectives as funcol

    trace = _trace(rank)
    with trace.watching([]):
        gathered = funcol.all_gather_tensor(torch.ones(2, 3), 0, rank.group)
        summed = funcol.all_reduce(torch.ones(4), "sum", rank.group)
        summed + 1  # the first use waits
        gathered + 1
    return trace.events()


def test_functional_collectives_are_the_same_operations(pool2):
    for gather, reduce in pool2.run(_functional):
        assert (gather.op, gather.payload_bytes, gather.group) == (
            "all_gather",
            48,
            "dp",
        )
        assert (reduce.op, reduce.payload_bytes, reduce.reduction) == (
            "all_reduce",
            16,
            "sum",
        )
        assert (gather.issue, reduce.issue) == (0, 1)
        assert (reduce.wait, gather.wait) == (2, 3)


def _messages(rank):
    trace = _trace(rank)
    sent, received = torch.ones(4), torch.empty(4)
    other = 1 - rank.rank
    with trace.watching([]):
        trace.set_phase("backward", sent)
        ops = [
            dist.P2POp(dist.isend, sent, group=rank.group, group_peer=other),
            dist.P2POp(dist.irecv, received, group=rank.group, group_peer=other),
        ]
        for work in dist.batch_isend_irecv(ops):
            work.wait()
    return trace.events()


def test_a_marked_tensor_has_its_own_phase(pool2):
    for rank, events in enumerate(pool2.run(_messages)):
        assert [(e.op, e.phase, e.peer) for e in events] == [
            ("send", "backward", 1 - rank),
            ("recv", "forward", 1 - rank),
        ]


def _both_ddps(rank):
    config = GPTConfig()
    tokens, labels = make_batch(config, step=0, batch_size=2)
    seen = []
    for wrap in (
        lambda m: ddp.DistributedDataParallel(m, rank.group, bucket_cap_mb=0.1),
        lambda m: nn.parallel.DistributedDataParallel(m, process_group=rank.group),
    ):
        gpt = build_model(config)
        model = wrap(gpt)
        trace = _trace(rank)
        with trace.watching(gpt.parameters()):
            loss = compute_loss(model(tokens), labels)
            trace.set_phase("backward")
            loss.backward()
        count = len(list(gpt.parameters()))
        seen.append([(e.site, e.gradients_ready, count) for e in trace.events()])
        stacks = trace.stacks.all()
        functions = [[s.function for s in stacks[e.stack]] for e in trace.events()]
        seen.append(functions)
    return seen


def test_a_call_site_is_the_line_that_issued_or_cpp(pool2):
    for mini, mini_stacks, upstream, upstream_stacks in pool2.run(_both_ddps):
        for site, ready, count in mini:
            assert (site.upstream, site.path) == ("minis", "mini_impls/ddp.py")
            assert site.function.endswith("start_grad_sync")
            assert "all_reduce(" in linecache.getline(ddp.__file__, site.line)
            assert 0 < ready <= count
        assert [ready for _, ready, _ in mini] == sorted(r for _, r, _ in mini)
        assert mini[0][1] < mini[0][2]  # it left while backward went on
        assert [site for site, _, _ in upstream] == [None] * len(upstream)
        # Who led to the call stands on the stack, however it came about.
        assert all("_make_backward_post_hook" in "".join(s) for s in mini_stacks)
        assert all(stack == [] for stack in upstream_stacks)


def _patched(rank):
    wait = dist.Work.wait
    try:
        with _trace(rank).watching([]):
            raise KeyError
    except KeyError:
        return dist.Work.wait is wait


def test_nothing_stays_patched_after_an_error(pool2):
    assert pool2.run(_patched) == [True, True]


# --- lines ---


def test_lines_of_functions_are_noted_and_imports_are_not():
    places = Places(get_roots(None))
    with LineTrace(places) as lines:
        mini_impls.gpus.check_devices("gloo", 1)
        build_model(GPTConfig(num_layers=1))
    assert sys.gettrace() is None
    noted = lines.lines["minis", "mini_impls/gpus.py"]
    source = [linecache.getline(mini_impls.gpus.__file__, n).strip() for n in noted]
    assert "if local_ranks < 1:" in source
    assert not any(line.startswith("raise ValueError") for line in source)
    assert ("minis", "mini_impls/model.py") in lines.lines


def test_lines_of_files_that_are_not_locked_are_not_noted():
    linear = ("pytorch", "torch/nn/modules/linear.py")
    with LineTrace(Places(get_roots(None), {linear})) as lines:
        nn.Linear(2, 2)
        mini_impls.gpus.check_devices("gloo", 1)
    assert set(lines.lines) == {linear, ("minis", "mini_impls/gpus.py")}


def test_lines_that_a_pool_of_threads_runs_are_noted():
    lines = LineTrace(Places(get_roots(None)))
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()  # its thread is older than the trace
        with pooled_too(lines), lines:
            pool.submit(mini_impls.gpus.check_devices, "gloo", 1).result()
        pool.submit(build_model, GPTConfig(num_layers=1)).result()
        assert pool.submit(sys.gettrace).result() is None
    assert ("minis", "mini_impls/gpus.py") in lines.lines
    assert ("minis", "mini_impls/model.py") not in lines.lines


def test_a_file_of_another_package_is_nobodys():
    places = Places(get_roots(None))
    assert places.find(torch.nn.modules.linear.__file__) == (
        "pytorch",
        "torch/nn/modules/linear.py",
    )
    assert places.find(linecache.__file__) is None
    assert places.find(sys.modules["_pytest"].__file__) is None


# --- memory ---


def test_shared_memory_counts_once():
    tensor = torch.zeros(100)
    assert held_bytes([tensor, tensor[:50], tensor.view(10, 10)]) == 400


def followed(**held):
    memory = LiveMemory()
    memory.start(held)
    return memory


def test_the_peak_falls_with_what_is_freed():
    held = torch.zeros(250)
    with followed(parameters=[held]) as kept:
        a = torch.zeros(1000)
        b = torch.zeros(1000)
        del a, b
    with followed(parameters=[held]) as freed:
        for _ in range(2):
            c = torch.zeros(1000)
            del c
    assert (kept.peak, freed.peak) == (9000, 5000)
    assert kept.peak_categories == {"made in forward": 8000, "parameters": 1000}


def test_the_peak_sees_a_resized_storage():
    held = torch.zeros(1000)
    with followed(parameters=[held]) as peak:
        held.untyped_storage().resize_(0)
        torch.zeros(10)
    assert peak.peak == 40


def test_the_peak_sees_what_is_resized_again_once_it_is_filled():
    held = torch.zeros(1000)
    with followed(parameters=[held]) as peak:
        held.untyped_storage().resize_(0)
        torch.zeros(10)
        held.untyped_storage().resize_(4000)
        held.fill_(1.0)
    assert (peak.peak, peak.peak_categories) == (4000, {"parameters": 4000})


def test_what_a_step_leaves_behind_is_counted_in_the_next():
    memory = LiveMemory()
    memory.start({}, measures=False)
    with memory:
        kept, named, gone = torch.zeros(1000), torch.zeros(10), torch.zeros(500)
        del gone
    memory.start({"gradients": [named]}, measures=True)
    assert memory.left == kept.nbytes
    with memory:
        torch.zeros(1)
    assert memory.peak_categories["left by earlier steps"] == 4000
    assert memory.peak_categories["gradients"] == 40


def test_what_only_cpp_holds_is_still_alive():
    weight = torch.ones(100, requires_grad=True)
    memory = followed(parameters=[weight])
    with memory:
        loss = (weight * weight.detach().exp()).sum()  # autograd keeps the exponentials
    memory.start({"parameters": [weight]})
    assert memory.left == 404
    del loss
    memory.start({"parameters": [weight]})
    assert memory.left == 0


def _wire(rank):
    tensor = torch.ones(100_000)
    dist.barrier(rank.group)
    before = written_bytes()
    dist.all_reduce(tensor, group=rank.group)
    return written_bytes() - before


def test_bytes_on_the_wire_are_measured(pool2):
    for sent in pool2.run(_wire):
        assert 400_000 <= sent < 401_024

"""Any layout reads a checkpoint or refuses it by name; a kill leaves a whole one."""

import contextlib
import io
import os
import random
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import torch.distributed as dist
from hypothesis import given, settings
from hypothesis import strategies as st
from ranks import RankFailure, RankPool

from mini_impls import checkpoint_async, checkpoint_files
from mini_impls.checkpoint import load, load_plain, save, save_plain
from mini_impls.checkpoint_async import (
    NAMED,
    AsyncCheckpointer,
    Stager,
    remove_older,
    resume,
    saved_steps,
)
from mini_impls.checkpoint_files import METADATA, publish, read_state, write_data
from mini_impls.checkpoint_plan import (
    HeldTensor,
    TensorBox,
    check_global_plan,
    create_local_plan,
    dedup_save_plans,
)
from mini_impls.demos import checkpoint as demo
from mini_impls.demos.checkpoint import ShardedTraining
from mini_impls.model import GPTConfig, make_batch
from mini_impls.traffic import CollectiveCounter
from tests.helpers import ROOT
from tests.readerkit.upstreams.full_disk import on_full_disk

pytestmark = pytest.mark.sampled

CONFIG = GPTConfig(  # 17 and 7: cut unevenly
    vocab_size=17, hidden_size=16, ffn_hidden_size=7, max_sequence_length=5
)
DTYPES = [torch.float32, torch.bfloat16, torch.int64, torch.bool]


def box_of(tensor):
    return TensorBox((0,) * tensor.dim(), tuple(tensor.shape))


def hold(tensor, box):
    """Return a part of a tensor as a rank has it that knows nothing of the rest."""
    part = box.cut_out_of(tensor, box_of(tensor)).clone()
    return HeldTensor(part, box.offsets, tuple(tensor.shape))


def blank(states):
    """Return the same layout, with nothing of what was in it."""
    return [
        {
            name: HeldTensor(torch.zeros_like(held.data), held.offsets, held.size)
            for name, held in state.items()
        }
        for state in states
    ]


def rows(tensors, world_size, dim=0):
    """Return the states of ranks that hold boxes along a dimension, vectors whole."""
    return [
        {
            name: hold(tensor, demo.cut(tensor.shape, dim, rank, world_size))
            for name, tensor in tensors.items()
        }
        for rank in range(world_size)
    ]


def write(directory, states, extra=None, lowest=False):
    """Save as all ranks together do, one after another in this process."""
    aside = directory.with_name(directory.name + ".part")
    plans = [create_local_plan(state) for state in states]
    plans = dedup_save_plans(plans, save_to_lowest_rank=lowest)
    check_global_plan(plans)
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    results = [
        write_data(aside, rank, plan, state)
        for rank, (plan, state) in enumerate(zip(plans, states, strict=True))
    ]
    publish(aside, directory, results, extra or {})


def some_tensors():
    random_numbers = torch.Generator().manual_seed(5)
    sizes = {"weight": (5, 4), "bias": (4,), "count": (), "table": (2, 3, 2)}
    return {n: torch.randn(s, generator=random_numbers) for n, s in sizes.items()}


def is_same(states, others):
    return all(
        torch.equal(state[name].data, other[name].data)
        for state, other in zip(states, others, strict=True)
        for name in state
    )


# --- layouts ---


@st.composite
def layouts(draw, size):
    """Draw boxes that fill a tensor, and for each of some ranks which one it holds."""
    boxes = [TensorBox((0,) * len(size), size)]
    for _ in range(draw(st.integers(0, 4)) if size else 0):
        box = boxes.pop(draw(st.integers(0, len(boxes) - 1)))
        dim = draw(st.integers(0, len(size) - 1))
        at = draw(st.integers(0, box.sizes[dim]))
        for start, length in ((0, at), (at, box.sizes[dim] - at)):
            offsets = [o + start * (d == dim) for d, o in enumerate(box.offsets)]
            sizes = [length if d == dim else s for d, s in enumerate(box.sizes)]
            boxes.append(TensorBox(tuple(offsets), tuple(sizes)))
    replicas = draw(st.lists(st.sampled_from(boxes), max_size=3))
    return draw(st.permutations(boxes + replicas))


@st.composite
def two_layouts(draw):
    """Draw tensors, and who holds what of them before a save and after a load."""
    before, after, tensors = {}, {}, {}
    for name in "ab"[: draw(st.integers(1, 2))]:
        size = tuple(draw(st.lists(st.integers(0, 5), max_size=3)))
        whole = torch.randint(0, 99, size).to(draw(st.sampled_from(DTYPES)))
        tensors[name] = whole
        for place in (before, after):
            for rank, box in enumerate(draw(layouts(size))):
                place.setdefault(rank, {})[name] = hold(whole, box)
    return tensors, list(before.values()), list(after.values())


@settings(max_examples=60, deadline=None)
@given(two_layouts(), st.booleans())
def test_what_one_layout_saved_another_loads(tmp_path_factory, drawn, lowest):
    tensors, before, after = drawn
    directory = tmp_path_factory.mktemp("any") / "saved"
    write(directory, before, {"step": 3}, lowest)
    there = blank(after)
    assert [read_state(directory, state) for state in there] == [{"step": 3}] * len(
        there
    )
    assert is_same(there, after)
    sizes = [path.stat().st_size for path in directory.glob("rank-*.bin")]
    assert len(sizes) == len(before)
    assert sum(sizes) == sum(t.numel() * t.element_size() for t in tensors.values())


@pytest.mark.parametrize("saved", [1, 2, 3, 4])
@pytest.mark.parametrize("loaded", [1, 2, 3, 4])
@pytest.mark.parametrize("dim", [0, 1])
def test_rows_of_some_ranks_become_rows_or_columns_of_others(
    tmp_path, saved, loaded, dim
):
    tensors = some_tensors()
    write(tmp_path / "saved", rows(tensors, saved))
    wanted = rows(tensors, loaded, dim)
    there = blank(wanted)
    for state in there:
        read_state(tmp_path / "saved", state)
    assert is_same(there, wanted)


@pytest.mark.parametrize(
    ("saved", "loaded"), list(zip(DTYPES, DTYPES[1:] + DTYPES[:1], strict=True))
)
def test_what_has_one_type_is_loaded_into_another(tmp_path, saved, loaded):
    whole = torch.arange(6).view(3, 2).to(saved)
    write(tmp_path / "saved", rows({"weight": whole}, 2))
    wanted = rows({"weight": whole.to(loaded)}, 1)
    (there,) = blank(wanted)
    read_state(tmp_path / "saved", there)
    assert is_same([there], wanted)


def test_plain_files_are_for_the_same_layout_alone(tmp_path):
    (first, _), (other, *_) = rows(some_tensors(), 2), rows(some_tensors(), 3)
    turned = torch.arange(6.0).view(1, 2, 3).mT
    first["table"] = HeldTensor(turned, (0, 0, 0), (2, 3, 2))
    save_plain(tmp_path / "0.safetensors", first)
    (there,) = blank([first])
    load_plain(tmp_path / "0.safetensors", there)
    assert is_same([there], [first])
    with pytest.raises(ValueError, match=r"weight: \(3, 4\) in .*, \(2, 4\) here"):
        load_plain(tmp_path / "0.safetensors", blank([other])[0])


# --- who writes what ---


def test_replicas_are_shared_out_as_drawn():
    whole = {name: torch.zeros(6) for name in "ABC"}
    plans = [create_local_plan(state) for state in rows(whole, 2)]

    def names(plans):
        return ["".join(item.name for item in plan) for plan in plans]

    assert names(plans) == ["ABC", "ABC"]
    assert names(dedup_save_plans(plans)) == ["AC", "B"]
    assert names(dedup_save_plans(plans, save_to_lowest_rank=True)) == ["ABC", ""]


def test_the_rank_with_fewest_bytes_writes_not_the_one_with_fewest_tensors():
    sizes = {"large": 100, "first": 10, "second": 10, "third": 10}
    tensors = {name: torch.zeros(size) for name, size in sizes.items()}
    plans = [create_local_plan(state) for state in rows(tensors, 2)]
    one, other = dedup_save_plans(plans)
    assert [item.name for item in one] == ["large"]
    assert [item.name for item in other] == ["first", "second", "third"]


def test_bytes_are_counted_not_elements():
    tensors = {"wide": torch.zeros(10, dtype=torch.float64)}
    tensors |= {n: torch.zeros(20, dtype=torch.uint8) for n in ("narrow", "too")}
    plans = dedup_save_plans([create_local_plan(s) for s in rows(tensors, 2)])
    assert [[i.name for i in p] for p in plans] == [["wide"], ["narrow", "too"]]


def test_what_is_empty_is_shared_out_too():
    empty = {name: torch.zeros(0) for name in "AB"}
    plans = dedup_save_plans([create_local_plan(s) for s in rows(empty, 2)])
    assert [[item.name for item in plan] for plan in plans] == [["A"], ["B"]]


def test_what_later_ranks_alone_hold_comes_on_top_of_replicas():
    tensors = {"cut": torch.zeros(2, 50), "twice": torch.zeros(40)}
    plans = dedup_save_plans([create_local_plan(s) for s in rows(tensors, 2)])
    assert [[item.bytes() for item in plan] for plan in plans] == [[200], [200, 160]]


@settings(max_examples=60, deadline=None)
@given(two_layouts())
def test_each_box_is_written_once_by_a_rank_that_holds_it(drawn):
    _, before, _ = drawn
    plans = [create_local_plan(state) for state in before]
    kept = dedup_save_plans(plans)
    places = [item.place() for plan in kept for item in plan]
    assert len(places) == len(set(places))
    assert set(places) == {item.place() for plan in plans for item in plan}
    for plan, own in zip(kept, plans, strict=True):
        assert [item for item in own if item in plan] == plan


def changed(size=(4, 3), offsets=(0, 0), sizes=(2, 3), dtype=torch.float32):
    held = HeldTensor(torch.zeros(sizes, dtype=dtype), offsets, size)
    return create_local_plan({"weight": held})


UPPER = changed()


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (changed(offsets=(1, 0), sizes=(3, 3)), "overlap"),
        (changed(offsets=(2, 0), sizes=(2, 2)), "10 of its 12 elements are written"),
        (changed(offsets=(3, 0)), r"is not within \(4, 3\)"),
        (changed(offsets=(-1, 0)), r"is not within \(4, 3\)"),
        (
            changed(offsets=(2, 0), dtype=torch.float64),
            "float64 on one rank, .*float32",
        ),
        (changed(size=(5, 3), offsets=(2, 0)), r"\(5, 3\) of float32 on one rank"),
    ],
)
def test_ranks_that_do_not_hold_one_state_are_refused(other, said):
    check_global_plan([UPPER, changed(offsets=(2, 0))])
    with pytest.raises(ValueError, match=f"weight: .*{said}"):
        check_global_plan([UPPER, other])


# --- damage ---


def cut_short(path):
    path.write_bytes(path.read_bytes()[:-1])


def flip_one_bit(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("file", "damage", "said"),
    [
        ("rank-00001.bin", cut_short, "rank-00001.bin: .* not what was written"),
        ("rank-00001.bin", flip_one_bit, "rank-00001.bin: .* not what was written"),
        ("rank-00000.bin", Path.unlink, "rank-00000.bin"),
        (METADATA, cut_short, f"{METADATA} is not what was written"),
        (METADATA, flip_one_bit, f"{METADATA} is not what was written"),
        (METADATA, Path.unlink, METADATA),
    ],
)
def test_a_damaged_file_is_refused_by_its_name(tmp_path, file, damage, said):
    tensors = {"weight": torch.arange(40.0).view(4, 10)}
    write(tmp_path / "saved", rows(tensors, 2))
    damage(tmp_path / "saved" / file)
    with pytest.raises((ValueError, FileNotFoundError), match=said):
        read_state(tmp_path / "saved", blank(rows(tensors, 1))[0])


def test_another_model_is_refused(tmp_path):
    tensors = some_tensors()
    write(tmp_path / "saved", rows(tensors, 2))
    larger = tensors | {"weight": torch.zeros(6, 4)}
    with pytest.raises(ValueError, match=r"weight: \(5, 4\) in .*, \(6, 4\) here"):
        read_state(tmp_path / "saved", rows(larger, 1)[0])
    more = tensors | {"new": torch.zeros(1)}
    with pytest.raises(ValueError, match="new is not in the checkpoint"):
        read_state(tmp_path / "saved", rows(more, 1)[0])


# --- stops ---


class StoppedHereError(Exception):
    """In place of a kill, at a line that can be counted."""


def stop_at(line):
    """Return a tracer that ends the writing of files at so many lines into it."""
    files = {checkpoint_files.__file__, checkpoint_async.__file__}
    seen = 0

    def trace(frame, event, _):
        nonlocal seen
        if frame.f_code.co_filename not in files:
            return None
        if event == "line":
            seen += 1
            if seen > line:
                raise StoppedHereError
        return trace

    return trace


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # stopped as it was opened
def test_wherever_a_save_stops_a_whole_checkpoint_is_there(tmp_path):
    """Between any two lines: what has its name is whole, and the next save works."""
    versions = [rows({"weight": torch.full((4, 2), float(i))}, 2) for i in range(3)]
    newest, before = set(), sys.gettrace()
    for line in range(10_000):
        root = tmp_path / str(line)
        write(root / NAMED.format(1), versions[1])
        stopped = False
        try:
            sys.settrace(stop_at(line))
            write(root / NAMED.format(2), versions[2])
            remove_older(root, 1)
        except StoppedHereError:
            stopped = True
        finally:
            sys.settrace(before)
        steps = saved_steps(root)
        newest.add(steps[-1])
        for step in steps:
            there = blank(versions[step])
            for state in there:
                read_state(root / NAMED.format(step), state)
            assert is_same(there, versions[step])
        if not stopped:
            break
        if steps[-1] == 1:
            write(root / NAMED.format(2), versions[2])
        remove_older(root, 1)
        assert [path.name for path in root.iterdir()] == [NAMED.format(2)]
    assert newest == {1, 2} and line > 50


def test_everything_is_on_disk_before_a_checkpoint_has_its_name(tmp_path, monkeypatch):
    done, sizes, opened = [], {}, list(Path("/proc/self/fd").iterdir())

    def synced(descriptor):
        done.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        sizes[done[-1]] = os.fstat(descriptor).st_size
        assert not Path(tmp_path / "saved").exists() or done[-1] == tmp_path.name

    rename = Path.rename
    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(
        Path, "rename", lambda self, to: (done.append("name"), rename(self, to))[1]
    )
    write(tmp_path / "saved", rows(some_tensors(), 2))
    files = ["rank-00000.bin", "rank-00001.bin"]
    assert done == [*files, METADATA, "saved.part", "name", tmp_path.name]
    for name in (*files, METADATA):  # and not in a buffer of the process
        assert sizes[name] == (tmp_path / "saved" / name).stat().st_size > 0
    assert list(Path("/proc/self/fd").iterdir()) == opened


# --- ranks ---


def over_ranks(rank, root, dim, failing=""):
    """Save rows, load along `dim`; return what was sent, wrong and written."""
    tensors = some_tensors()
    before = rows(tensors, rank.world_size)[rank.rank]
    if failing == "state" and rank.rank == 1:
        before["bias"] = HeldTensor(torch.zeros(3), (0,), (3,))
    if failing == "disk" and rank.rank == 1:
        checkpoint_files.os.fsync = None
    told = ""
    with CollectiveCounter() as sent:
        try:
            save(root / "saved", before, rank.group, extra={"from": rank.rank})
        except RuntimeError as error:
            told = str(error)
        finally:
            checkpoint_files.os.fsync = FSYNC
    wanted = rows(tensors, rank.world_size, dim)[rank.rank]
    (there,) = blank([wanted])
    if told:
        return told, (root / "saved").exists()
    with CollectiveCounter() as received:
        extra = load(root / "saved", there, rank.group)
    assert is_same([there], [wanted]) and extra == {"from": 0}
    return sent.counts(), received.counts()


FSYNC = os.fsync


@pytest.mark.further
@pytest.mark.parametrize(
    "pool", [2, pytest.param(4, marks=pytest.mark.slow)], indirect=True
)
def test_ranks_save_together_and_load_another_layout(pool, tmp_path):
    for sent, received in pool.run(over_ranks, tmp_path, 1):
        assert sent == {"all_gather": 2, "gather": 2, "scatter": 2, "broadcast": 3}
        assert received == {"all_gather": 2}


@pytest.mark.parametrize(
    ("failing", "said"),
    [
        ("state", r"plan: rank 0: ValueError: .*bias: \(3,\) .*\(4,\)"),
        ("disk", r"write: .*rank 1: TypeError"),
    ],
)
def test_what_one_rank_meets_all_ranks_are_told(pool2, tmp_path, failing, said):
    for told, is_there in pool2.run(over_ranks, tmp_path, 0, failing):
        assert re.search(said, told) and not is_there


def over_another(rank, root):
    state = rows(some_tensors(), rank.world_size)[rank.rank]
    save(root / "saved", state, rank.group)
    save(root / "saved", state, rank.group)


def damaged_for_one(rank, root):
    state = rows({"weight": torch.ones(4, 4)}, rank.world_size)[rank.rank]
    save(root / "saved", state, rank.group)
    if rank.rank == 1:
        cut_short(root / "saved" / "rank-00001.bin")
    try:
        load(root / "saved", state, rank.group)
    except RuntimeError as error:
        return str(error)
    return ""


def test_a_checkpoint_is_never_overwritten(pool2, tmp_path):
    with pytest.raises(RankFailure, match=r"plan: rank 0: FileExistsError: .*saved"):
        pool2.run(over_another, tmp_path)


def test_no_rank_goes_on_where_one_could_not_read(pool2, tmp_path):
    for told in pool2.run(damaged_for_one, tmp_path):
        assert "read: rank 1: ValueError" in told and "rank-00001.bin" in told


# --- in the background ---


def test_a_staged_state_stays_what_it_was():
    stager, tensors = Stager(), some_tensors()
    (state,) = rows(tensors, 1)
    staged = stager.stage(state)
    memory = {name: held.data.data_ptr() for name, held in staged.items()}
    for held in state.values():
        held.data.add_(1)
    assert is_same([staged], rows(tensors, 1))
    again = stager.stage(state)
    assert is_same([again], [state])
    assert memory == {name: held.data.data_ptr() for name, held in again.items()}


def test_a_state_of_another_type_is_staged_in_its_own():
    stager, thirds = Stager(), torch.tensor([1.0, 2.0]) / 3
    for dtype in (torch.bfloat16, torch.float32, torch.float64):
        state = {"weight": HeldTensor(thirds.to(dtype), (0,), (2,))}
        assert is_same([stager.stage(state)], [state])


def test_a_copy_waits_for_the_save_that_reads_its_memory(tmp_path, monkeypatch):
    may_write, written = threading.Event(), []

    def write(directory, staged, group, *, extra):
        assert may_write.wait(60)
        written.append(staged["weight"].data.item())

    monkeypatch.setattr(checkpoint_async, "save", write)
    other_rank = SimpleNamespace(rank=lambda: 1)  # it removes no old ones
    checkpointer = AsyncCheckpointer(tmp_path, other_rank)
    weight = torch.tensor([1.0])
    state = {"weight": HeldTensor(weight, (0,), (1,))}
    checkpointer.save(1, state, {})
    weight.fill_(2.0)
    threading.Timer(0.5, may_write.set).start()  # meanwhile the next save is asked for
    checkpointer.save(2, state, {})
    checkpointer.close()
    assert written == [1.0, 2.0]


def test_the_next_save_tells_once_that_the_last_one_failed(tmp_path, monkeypatch):
    written = []

    def write(directory, staged, group, *, extra):
        if directory.name == "step-00000001":
            raise RuntimeError("the disk is full")
        written.append(directory.name)

    monkeypatch.setattr(checkpoint_async, "save", write)
    checkpointer = AsyncCheckpointer(tmp_path, SimpleNamespace(rank=lambda: 1))
    checkpointer.save(1, {}, {})
    with pytest.raises(RuntimeError, match="the disk is full"):
        checkpointer.save(2, {}, {})
    checkpointer.save(3, {}, {})
    checkpointer.close()
    assert written == ["step-00000003"]


def test_no_thread_outlives_a_save_that_failed(tmp_path, monkeypatch):
    def fail(directory, staged, group, *, extra):
        raise OSError(directory.name)

    monkeypatch.setattr(checkpoint_async, "save", fail)
    before = threading.enumerate()
    checkpointer = AsyncCheckpointer(tmp_path, SimpleNamespace(rank=lambda: 1))
    checkpointer.save(1, {}, {})
    with pytest.raises(OSError, match=NAMED.format(1)):
        checkpointer.close()
    assert threading.enumerate() == before


def resume_beside_an_older_look(rank, root):
    seen = checkpoint_async.saved_steps
    if rank.rank == 1:
        checkpoint_async.saved_steps = lambda root: seen(root)[:1]
    try:
        return resume(root, {}, rank.group)
    finally:
        checkpoint_async.saved_steps = seen


def test_all_ranks_resume_what_the_first_one_found(pool2, tmp_path):
    for step in (1, 2):
        write(tmp_path / NAMED.format(step), [{}], {"step": step})
    assert pool2.run(resume_beside_an_older_look, tmp_path) == [{"step": 2}] * 2


def save_and_change(rank, root):
    """Save in the background while the state changes; then over what is there."""
    checkpointer = AsyncCheckpointer(root / "kept", dist.new_group())  # keeps two
    tensors = {"weight": torch.zeros(4, 4)}
    (state,) = rows(tensors, rank.world_size)[rank.rank : rank.rank + 1]
    extra = {"losses": []}
    for step in range(1, 5):
        state["weight"].data.fill_(step)
        checkpointer.save(step, state, extra)
        state["weight"].data.fill_(-1.0)
        extra["losses"].append(step)
    checkpointer.wait()
    loaded = resume(root / "kept", state, rank.group)
    checkpointer.save(4, state, {})
    told = ""
    try:
        checkpointer.close()
    except RuntimeError as error:
        told = str(error)
    return loaded, state["weight"].data.unique().tolist(), told


def test_training_goes_on_while_a_checkpoint_is_written(pool2, tmp_path):
    for loaded, values, told in pool2.run(save_and_change, tmp_path):
        assert loaded == {"losses": [1, 2, 3]} and values == [4.0]
        assert "a checkpoint is never overwritten" in told
    assert saved_steps(tmp_path / "kept") == [3, 4]


def test_steps_are_in_the_order_of_their_numbers(tmp_path):
    """Not of their names, once these are longer than the zeros in front."""
    for step in (10**8, 7, 10**8 - 1):
        (tmp_path / NAMED.format(step)).mkdir()
    assert saved_steps(tmp_path) == [7, 10**8 - 1, 10**8]


def test_at_least_one_checkpoint_is_kept(tmp_path):
    with pytest.raises(ValueError, match="at least 1 checkpoint is kept, not 0"):
        AsyncCheckpointer(tmp_path, None, keep=0)


# --- resumed ---


def train(rank, root, steps, layout="rows"):
    """Train to so many steps from whatever is saved; return losses and parameters."""
    saving = dist.new_group()
    training = ShardedTraining(rank, CONFIG, layout, seed=0)
    found = resume(root, training.state(), saving) or {"step": 0, "losses": []}
    losses = found["losses"]
    checkpointer = AsyncCheckpointer(root, saving)
    for step in range(found["step"], steps):
        losses.append(
            training.step(make_batch(CONFIG, step=step, batch_size=2 * rank.world_size))
        )
        extra = {"step": step + 1, "losses": losses}
        checkpointer.save(step + 1, training.state(), extra)
    checkpointer.close()
    dist.barrier(rank.group)
    whole = training.whole()
    return found["step"], losses, {n: t.clone().numpy() for n, t in whole.items()}


def is_same_run(run, other):
    (_, losses, params), (_, other_losses, others) = run, other
    return losses == other_losses and all(
        (params[name] == others[name]).all() for name in params
    )


@pytest.mark.parametrize("layout", ["rows", "columns"])
def test_a_resumed_run_is_the_run_that_never_stopped(pool2, tmp_path, layout):
    whole = pool2.run(train, tmp_path / "whole", 5)[0]
    pool2.run(train, tmp_path / "halves", 2)
    resumed = pool2.run(train, tmp_path / "halves", 5, layout)[0]
    assert resumed[0] == 2 and is_same_run(resumed, whole)


def kill_at_random(tmp_path, kills, world_size, steps):
    """Run again and again, each time until a kill or the end; count the kills."""
    draw = random.Random(world_size)
    pool = RankPool(world_size)
    try:
        began = time.monotonic()
        whole = pool.run(train, tmp_path / "whole", steps)[0]
        takes = time.monotonic() - began
    finally:
        pool.close()
    killed, run, done, within = 0, 0, 0, []
    while killed < kills:
        root = tmp_path / f"run-{run}"
        pool = RankPool(world_size)
        pool.run(saved_steps_of, root)  # until they are up
        victims = draw.sample(pool._processes, draw.randint(1, world_size))
        timer = threading.Timer(
            draw.uniform(0, takes * 0.7), lambda v=victims: [p.kill() for p in v]
        )
        timer.start()
        try:
            resumed = pool.run(train, root, steps)[0]
        except RankFailure:
            killed += 1
            timer.join()
            there = saved_steps(root)
            assert not there or there[-1] >= done
            done = there[-1] if there else 0
            within.append(any(root.glob("*.part")))
        else:
            timer.cancel()
            assert is_same_run(resumed, whole)
            run, done = run + 1, 0
        finally:
            pool.close()
    pool = RankPool(world_size)
    try:
        assert is_same_run(pool.run(train, root, steps)[0], whole)
    finally:
        pool.close()
    return within


def saved_steps_of(rank, root):
    return saved_steps(root)


def test_a_killed_run_goes_on_to_the_same_end(tmp_path):
    kill_at_random(tmp_path, kills=3, world_size=2, steps=8)


@pytest.mark.slow
@pytest.mark.parametrize(("world_size", "kills"), [(2, 50), (3, 10)])
def test_a_run_killed_at_random_moments_goes_on_to_the_same_end(
    tmp_path, world_size, kills
):
    within = kill_at_random(tmp_path, kills, world_size, steps=30)
    assert any(within)  # some kills were in the middle of a save


# --- the demonstration ---


def run_demo(rank, root, steps):
    args = demo.argparse.Namespace(steps=steps, directory=str(root))
    with contextlib.redirect_stdout(io.StringIO()) as out:
        demo.demo(rank, args)
    return out.getvalue()


def test_the_demo_resumes_where_it_was_left(pool2, tmp_path):
    first = pool2.run(run_demo, tmp_path, 2)[0]
    assert "resumed on columns at step 1" in first
    again = pool2.run(run_demo, tmp_path, 6)[0]
    assert "resumed on rows at step 2" in again and "step 0" not in again
    assert "parameter 0.0e+00" in again


@pytest.mark.further
def test_a_disk_that_takes_no_more_is_one_line_and_leaves_no_checkpoint(tmp_path):
    run = f"{sys.executable} -m mini_impls.checkpoint --steps 2 --directory run"
    script = f"cd $0; {run}; echo $?; ls run"
    ended = subprocess.run(
        [*on_full_disk(tmp_path, kib=1024), "sh", "-c", script, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert ended.stdout.splitlines()[1:] == ["1"]  # and no file; above, a step's loss
    told = r".* rank \d failed first: OSError: \[Errno \d+\] .*: 'run'\n"
    assert re.fullmatch(told, ended.stderr)

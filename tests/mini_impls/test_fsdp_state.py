"""Sharded state survives a change of world, and a global norm is global."""

import json
import math
import os
import re
import subprocess
import sys

import pytest
import torch
from ranks import RankFailure
from safetensors.torch import load_file
from torch import nn

from mini_impls.demos.fsdp_state import train_step
from mini_impls.fsdp_options import fully_shard
from mini_impls.fsdp_state import (
    Shard,
    clip_grad_norm_,
    load_checkpoint,
    save_checkpoint,
    shard_rows,
)
from mini_impls.model import (
    GPTConfig,
    build_model,
    compute_loss,
    make_batch,
    shard_batch,
    train_one_process,
)
from mini_impls.traffic import CollectiveCounter
from tests.helpers import ROOT
from tests.readerkit.upstreams.full_disk import on_full_disk

pytestmark = pytest.mark.sampled

# 17 and 7 rows: cut unevenly by two and by four, one rank with fewer
CONFIG = GPTConfig(
    vocab_size=17, hidden_size=16, ffn_hidden_size=7, max_sequence_length=5
)


def sharded(rank, seed=0):
    model = build_model(CONFIG, seed=seed)
    shards = {n: shard_rows(p, rank.group) for n, p in model.named_parameters()}
    parameters = [shard.param for shard in shards.values()]
    # eps: a key's bias has no gradient but rounding, which AdamW would blow up
    optimizer = torch.optim.AdamW(parameters, lr=0.01, betas=(0.8, 0.9), eps=1e-4)
    return model, shards, optimizer


def run_steps(rank, model, shards, optimizer, steps, max_norm=math.inf):
    return [
        train_step(
            model,
            shards,
            optimizer,
            make_batch(CONFIG, step=step, batch_size=8),
            rank.group,
            max_norm=max_norm,
        )
        for step in steps
    ]


def state_of(shards, optimizer):
    """Return this rank's rows of parameters and of everything the optimizer keeps."""
    state = {}
    for name, shard in shards.items():
        state[name] = shard.param.detach()
        for key, value in optimizer.state[shard.param].items():
            state[f"{name}/{key}"] = value
    return state


def join(per_rank):
    """Put the rows of all ranks together."""
    return {
        key: torch.cat([state[key] for state in per_rank]) if value.dim() else value
        for key, value in per_rank[0].items()
    }


def save(rank, directory):
    model, shards, optimizer = sharded(rank)
    run_steps(rank, model, shards, optimizer, range(3))
    optimizer.param_groups[0]["lr"] = 0.02  # as a scheduler would
    save_checkpoint(directory, shards, optimizer, rank.group, step=3)
    before = state_of(shards, optimizer)
    before = {key: value.clone() for key, value in before.items()}
    run_steps(rank, model, shards, optimizer, range(3, 6))
    held = sum(shard.param.nbytes for shard in shards.values())
    return before, state_of(shards, optimizer), held


def load(rank, directory):
    model, shards, optimizer = sharded(rank, seed=5)
    with CollectiveCounter() as sent:
        step = load_checkpoint(directory, shards, optimizer)
    loaded = {k: v.clone() for k, v in state_of(shards, optimizer).items()}
    options = {k: v for k, v in optimizer.param_groups[0].items() if k != "params"}
    run_steps(rank, model, shards, optimizer, range(step, step + 3))
    return step, loaded, options, state_of(shards, optimizer), sent.counts()


@pytest.mark.parametrize(("saved_on", "loaded_on"), [(2, 2), (2, 4), (4, 2), (4, 4)])
def test_loads_on_another_world(request, tmp_path, saved_on, loaded_on):
    saver = request.getfixturevalue(f"pool{saved_on}")
    loader = request.getfixturevalue(f"pool{loaded_on}")
    directory = tmp_path / "checkpoint"
    saved = saver.run(save, directory)
    answers = loader.run(load, directory)
    want = join([before for before, _, _ in saved])
    got = join([loaded for _, loaded, *_ in answers])
    assert got.keys() == want.keys()
    for key, value in want.items():
        assert torch.equal(got[key], value), key
    for step, _, options, _, counts in answers:
        assert step == 3
        assert counts == {}, "loading sends nothing"
        assert (options["lr"], options["betas"]) == (0.02, (0.8, 0.9))
    resumed = join([after for *_, after, _ in answers])
    uninterrupted = join([after for _, after, _ in saved])
    for key, value in uninterrupted.items():
        if saved_on == loaded_on:
            assert torch.equal(resumed[key], value), key
        else:  # two ranks and four add the rows' gradients in another order
            torch.testing.assert_close(resumed[key], value, rtol=1e-3, atol=1e-4)


def go_back_to_the_start(rank, directory):
    model, shards, _ = sharded(rank)
    parameters = [shard.param for shard in shards.values()]
    optimizer = torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
    save_checkpoint(directory, shards, optimizer, rank.group, step=0)
    once = run_steps(rank, model, shards, optimizer, range(3))
    load_checkpoint(directory, shards, optimizer)
    return once, run_steps(rank, model, shards, optimizer, range(3))


def test_a_checkpoint_from_before_the_first_step_has_no_momentum(pool2, tmp_path):
    for once, again in pool2.run(go_back_to_the_start, tmp_path / "start"):
        assert again == once


def test_each_rank_writes_its_own_rows_and_nothing_else(pool4, tmp_path):
    directory = tmp_path / "checkpoint"
    saved = pool4.run(save, directory)
    names = sorted(path.name for path in tmp_path.glob("**/*") if path.is_file())
    assert names == ["index.json", *(f"rank-0000{r}.safetensors" for r in range(4))]
    for rank, (before, _, held) in enumerate(saved):
        tensors = load_file(directory / f"rank-0000{rank}.safetensors")
        for key, value in tensors.items():
            assert torch.equal(value, before[key])
        assert sum(t.nbytes for t in tensors.values()) == 3 * held  # and two moments
    index = json.loads((directory / "index.json").read_text())
    assert index["shapes"]["layers.0.mlp.linear_fc1.weight"] == [7, 16]
    assert index["starts"]["layers.0.mlp.linear_fc1.weight"] == [0, 2, 4, 6]
    assert index["scalars"]["final_layernorm.bias"] == {"step": 3.0}


def cut_short(rank, directory):
    model, shards, optimizer = sharded(rank)
    run_steps(rank, model, shards, optimizer, range(1))
    part = directory.with_name("checkpoint.part")
    if rank.rank == 0:  # what a save leaves that was killed in the middle
        part.mkdir()
        (part / "rank-00007.safetensors").write_bytes(b"cut")
    try:
        load_checkpoint(directory, shards, optimizer)
    except FileNotFoundError:
        found = False
    save_checkpoint(directory, shards, optimizer, rank.group, step=1)
    return found, sorted(path.name for path in directory.iterdir()), part.exists()


def test_a_save_cut_short_is_no_checkpoint(pool2, tmp_path):
    for found, names, part in pool2.run(cut_short, tmp_path / "checkpoint"):
        assert not found
        assert "rank-00007.safetensors" not in names
        assert not part


def save_twice(rank, directory):
    _, shards, optimizer = sharded(rank)
    for _ in range(2):
        save_checkpoint(directory, shards, optimizer, rank.group, step=1)


def test_a_checkpoint_is_never_overwritten(pool2, tmp_path):
    with pytest.raises(RankFailure, match=r"FileExistsError.* never overwritten"):
        pool2.run(save_twice, tmp_path / "checkpoint")


class FakeGroup:
    """One rank of one, for what sends nothing."""

    def rank(self):
        return 0

    def size(self):
        return 1


def test_another_model_is_named(pool2, tmp_path):
    directory = tmp_path / "checkpoint"
    pool2.run(save, directory)
    other = {
        "output_layer.weight": shard_rows(torch.zeros(17, 8), FakeGroup()),
        "new.bias": shard_rows(torch.zeros(3), FakeGroup()),
    }
    optimizer = torch.optim.SGD([shard.param for shard in other.values()])
    with pytest.raises(ValueError, match="another model") as error:
        load_checkpoint(directory, other, optimizer)
    assert "output_layer.weight: [17, 16] saved, [17, 8] here" in str(error.value)
    assert "new.bias: None saved, [3] here" in str(error.value)


def two_groups(rank, lr, first):
    """Weights and bias apart, whichever comes first."""
    shards = {n: shard_rows(torch.ones(4), rank.group) for n in ("bias", "weight")}
    for shard in shards.values():
        shard.param.grad = torch.ones_like(shard.param)
    second = "bias" if first == "weight" else "weight"
    groups = [
        {"params": [shards[first].param], "lr": lr},
        {"params": [shards[second].param], "weight_decay": 0.5},
    ]
    return shards, torch.optim.AdamW(groups, lr=lr, foreach=False)


def save_two_groups(rank, directory, lr):
    shards, optimizer = two_groups(rank, lr, "weight")
    optimizer.step()
    save_checkpoint(directory, shards, optimizer, rank.group, step=1)


def load_two_groups(rank, directory, lr, first):
    shards, optimizer = two_groups(rank, lr, first)
    load_checkpoint(directory, shards, optimizer)
    return [group["lr"] for group in optimizer.param_groups]


def test_groups_in_another_order_are_refused_by_name(pool2, tmp_path):
    directory = tmp_path / "checkpoint"
    pool2.run(save_two_groups, directory, 0.1)
    assert pool2.run(load_two_groups, directory, 0.1, "weight") == [[0.1, 0.1]] * 2
    message = "other parameter groups: bias: group 1 saved, group 0 here; weight: group"
    with pytest.raises(RankFailure, match=message):
        pool2.run(load_two_groups, directory, 0.1, "bias")


def test_a_learning_rate_may_be_a_tensor(pool2, tmp_path):
    directory = tmp_path / "checkpoint"
    pool2.run(save_two_groups, directory, torch.tensor(0.25))
    assert not directory.with_name("checkpoint.part").exists()
    for rates in pool2.run(load_two_groups, directory, torch.tensor(9.0), "weight"):
        assert all(isinstance(rate, torch.Tensor) for rate in rates)
        assert rates == [0.25, 0.25]
    assert pool2.run(load_two_groups, directory, 9.0, "weight") == [[0.25, 0.25]] * 2


def save_an_option_that_is_no_value(rank, directory):
    shards, optimizer = two_groups(rank, 0.1, "weight")
    optimizer.param_groups[0]["schedule"] = max
    with pytest.raises(TypeError, match="not JSON serializable"):
        save_checkpoint(directory, shards, optimizer, rank.group, step=1)


def test_what_cannot_be_saved_leaves_nothing_behind(pool2, tmp_path):
    pool2.run(save_an_option_that_is_no_value, tmp_path / "checkpoint")
    assert list(tmp_path.iterdir()) == []


def unshardable_state(rank, directory):
    shards = {"w": shard_rows(torch.ones(4, 4), rank.group)}
    shards["w"].param.grad = torch.ones_like(shards["w"].param)
    optimizer = torch.optim.Adafactor([shards["w"].param])
    optimizer.step()
    save_checkpoint(directory, shards, optimizer, rank.group, step=1)


def test_state_of_another_shape_is_refused(pool2, tmp_path):
    message = r"state row_var of w has shape \(2, 1\), its shard \(2, 4\)"
    with pytest.raises(RankFailure, match=message):
        pool2.run(unshardable_state, tmp_path / "checkpoint")


# --- with the shards of fsdp.py ---


def with_fsdp(rank, directory):
    runs = []
    for resume in (False, True):
        model = build_model(CONFIG, seed=int(resume))
        modules = ["", "layers.0", "layers.1"]
        state = fully_shard(model, rank.group, modules=modules)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, eps=1e-4)
        shards = {}
        for group in state.param_groups.values():
            for p in group.fsdp_params:
                start = min(rank.rank * p.padded_sharded_size[0], p.orig_size[0])
                name = p.owners[0].fqn
                shards[name] = Shard(p.sharded_param, start, p.orig_size[0])
        if resume:
            load_checkpoint(directory, shards, optimizer)
        for step in range(2 if resume else 0, 4):
            if step == 2 and not resume:
                save_checkpoint(directory, shards, optimizer, rank.group, step=2)
            batch = make_batch(CONFIG, step=step, batch_size=8)
            tokens, labels = shard_batch(
                batch, rank=rank.rank, world_size=rank.world_size
            )
            optimizer.zero_grad()
            compute_loss(model(tokens), labels).backward()
            norm = clip_grad_norm_(model.parameters(), 0.5, rank.group)
            optimizer.step()
        runs.append((state.full_parameters(model), norm.item()))
    return runs


def test_fsdp_resumes_where_it_was(pool, tmp_path):
    model = build_model(CONFIG)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, eps=1e-4)
    for step in range(4):
        optimizer.zero_grad()
        for rank in range(pool.world_size):
            batch = make_batch(CONFIG, step=step, batch_size=8)
            tokens, labels = shard_batch(batch, rank=rank, world_size=pool.world_size)
            (compute_loss(model(tokens), labels) / pool.world_size).backward()
        want = nn.utils.clip_grad_norm_(model.parameters(), 0.5).item()
        optimizer.step()
    for straight, resumed in pool.run(with_fsdp, tmp_path / "checkpoint"):
        assert straight[1] == resumed[1] == pytest.approx(want, rel=1e-5)
        for name, tensor in straight[0].items():
            assert torch.equal(resumed[0][name], tensor)
        for name, p in model.named_parameters():
            # the norm adds squares rank by rank, in another order than one process
            torch.testing.assert_close(straight[0][name], p, rtol=1e-3, atol=1e-4)


# --- clipping ---


def test_training_with_clipping_equals_one_process(pool2):
    model = build_model(CONFIG)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=0.01, betas=(0.8, 0.9), eps=1e-4
    )

    class Clipped:
        def zero_grad(self):
            optimizer.zero_grad()

        def step(self):
            norms.append(nn.utils.clip_grad_norm_(model.parameters(), 0.3).item())
            optimizer.step()

    norms = []
    batches = [make_batch(CONFIG, step=i, batch_size=8) for i in range(10)]
    losses = train_one_process(model, Clipped(), batches, chunks=2)
    assert min(norms) > 0.3, "it clips"
    for answers in pool2.run(clipped):
        # the norm's squares are added rank by rank: last bits, carried on by AdamW
        assert [loss for loss, _ in answers] == pytest.approx(losses, rel=1e-5)
        assert [norm for _, norm in answers] == pytest.approx(norms, rel=1e-4)


def clipped(rank):
    model, shards, optimizer = sharded(rank)
    return run_steps(rank, model, shards, optimizer, range(10), max_norm=0.3)


def clip(rank, norm_type, max_norm):
    torch.manual_seed(0)
    whole = [torch.randn(17, 3), torch.randn(1), torch.randn(5)]
    shards = [shard_rows(torch.zeros_like(t), rank.group) for t in whole[:2]]
    for t, shard in zip(whole, shards, strict=False):
        shard.param.grad = t[shard.start : shard.start + len(shard.param)].clone()
    replicated = nn.Parameter(torch.zeros(5))
    replicated.grad = whole[2].clone()
    without = nn.Parameter(torch.zeros(2))
    with CollectiveCounter() as sent:
        total = clip_grad_norm_(
            [*(shard.param for shard in shards), without],
            max_norm,
            rank.group,
            norm_type=norm_type,
            replicated=[replicated],
        )
    grads = [shard.param.grad for shard in shards]
    return total.item(), grads, replicated.grad, sent.payload_bytes()


@pytest.mark.parametrize("max_norm", [0.7, 1000.0])
@pytest.mark.parametrize("norm_type", [2.0, 1.0, 3.0, math.inf])
def test_clips_by_the_norm_of_all_gradients(pool, norm_type, max_norm):
    torch.manual_seed(0)
    params = [nn.Parameter(torch.zeros(*size)) for size in ((17, 3), (1,), (5,))]
    for p in params:
        p.grad = torch.randn(p.shape)
    want = nn.utils.clip_grad_norm_(params, max_norm, norm_type).item()
    answers = pool.run(clip, norm_type, max_norm)
    for i in range(2):
        got = torch.cat([grads[i] for _, grads, _, _ in answers])
        torch.testing.assert_close(got, params[i].grad)
    for total, _, replicated, payload in answers:
        assert total == pytest.approx(want)
        torch.testing.assert_close(replicated, params[2].grad)
        # a maximum has beside it whether it is a number
        assert payload == {"all_reduce": 8 if norm_type == math.inf else 4}


def clip_halves(rank):
    p = nn.Parameter(torch.zeros(3, dtype=torch.bfloat16))
    p.grad = torch.ones_like(p)
    return clip_grad_norm_([p], 9.0, rank.group).item()


def test_the_norm_of_gradients_in_16_bits_has_32(pool2):
    assert pool2.run(clip_halves) == [pytest.approx(6**0.5, rel=1e-6)] * 2


def doubles(world_size):
    """Return gradients of which the last rank has no rows."""
    return [
        t.double() for t in (torch.tensor([4.0, 3e-9])[: world_size - 1], torch.ones(1))
    ]


def clip_doubles(rank, norm_type):
    whole = doubles(rank.world_size)
    shards = [shard_rows(torch.zeros_like(t), rank.group) for t in whole]
    for t, shard in zip(whole, shards, strict=True):
        shard.param.grad = t[shard.start : shard.start + len(shard.param)].clone()
    params = [shard.param for shard in shards]
    with CollectiveCounter() as sent:
        total = clip_grad_norm_(params, 1.0, rank.group, norm_type=norm_type)
    return total.item(), [p.grad for p in params], sent.payload_bytes()


@pytest.mark.parametrize("norm_type", [2.0, math.inf])
def test_doubles_are_clipped_where_a_rank_has_no_rows(few_ranks, norm_type):
    params = [nn.Parameter(t) for t in doubles(few_ranks.world_size)]
    for p in params:
        p.grad = p.detach().clone()
    want = nn.utils.clip_grad_norm_(params, 1.0, norm_type).item()
    answers = few_ranks.run(clip_doubles, norm_type)
    assert not any(grad.numel() for grad in answers[-1][1])
    for total, _, payload in answers:
        assert total == pytest.approx(want, rel=1e-6)
        assert payload == {"all_reduce": 8 if norm_type == math.inf else 4}
    for i, param in enumerate(params):
        got = torch.cat([grads[i] for _, grads, _ in answers])
        torch.testing.assert_close(got, param.grad, rtol=1e-6, atol=0)


def clip_a_nan(rank, norm_type, who):
    p = nn.Parameter(torch.zeros(2))
    p.grad = torch.tensor([1.0, math.nan if rank.rank == who else 2.0])
    total = clip_grad_norm_([p], 1.0, rank.group, norm_type=norm_type)
    return total.item(), p.grad


@pytest.mark.parametrize("norm_type", [2.0, math.inf])
def test_a_nan_on_any_rank_is_the_norm_on_all(pool, norm_type):
    for who in range(pool.world_size):
        for total, grad in pool.run(clip_a_nan, norm_type, who):
            assert math.isnan(total)
            assert grad.isnan().all()


def clip_zeros_to_zero(rank):
    p = nn.Parameter(torch.ones(2))
    p.grad = torch.zeros(2)
    return clip_grad_norm_([p], 0.0, rank.group).item(), p.grad


def test_a_norm_of_zero_under_a_bound_of_zero_is_no_nan(pool2):
    for total, grad in pool2.run(clip_zeros_to_zero):
        assert total == 0.0
        assert torch.equal(grad, torch.zeros(2))


def clip_nothing(rank):
    return clip_grad_norm_([], 1.0, rank.group)


def test_the_norm_of_nothing_is_zero(pool2):
    assert pool2.run(clip_nothing) == [torch.tensor(0.0)] * 2
    assert nn.utils.clip_grad_norm_([], 1.0) == 0, "as torch has it"


def test_a_norm_that_is_none_is_refused():
    with pytest.raises(ValueError, match="above 0, got 0"):
        clip_grad_norm_([], 1.0, None, norm_type=0)


@pytest.mark.further
def test_a_disk_that_takes_no_more_is_one_line_and_leaves_no_file(tmp_path):
    run = f"{sys.executable} -m mini_impls.fsdp_state --steps 2"
    script = f"{run}; echo $?; find $0 -name '*.safetensors'"
    ended = subprocess.run(
        [*on_full_disk(tmp_path, kib=512), "sh", "-c", script, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)},
    )
    assert ended.stdout.splitlines()[1:] == ["1"]  # above, a step's loss
    told = r".* rank \d failed first: OSError: \[Errno \d+\] .*/step'\n"
    assert re.fullmatch(told, ended.stderr)

"""Both sharding minis do as torch's own do, on models that are run or named oddly."""

from dataclasses import replace

import pytest
import torch
import torch.distributed as dist
from ranks import RankFailure
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.fsdp.wrap import CustomPolicy
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

from mini_impls import fsdp_options
from mini_impls.fsdp_flat import fully_shard_flat
from mini_impls.traffic import CollectiveCounter
from tests.quick import quick_each

pytestmark = pytest.mark.sampled

BLOCKS = [f"blocks.{i}" for i in range(4)]
LEAVES = [f"{block}.{leaf}" for block in BLOCKS for leaf in "ab"]


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 6), nn.Linear(6, 4)

    def forward(self, x):
        return x + self.b(torch.tanh(self.a(x)))


class Model(nn.Module):
    """A stem that no name covers but the root's, and four blocks."""

    def __init__(self, how):
        super().__init__()
        torch.manual_seed(0)
        self.stem = nn.Linear(4, 4)
        self.blocks = nn.ModuleList(Block() for _ in range(4))
        self.how = how

    def forward(self, x):
        return self.how(self.blocks, self.stem(x))


# --- how the blocks are run ---


class Segments:
    """Checkpoints of so many blocks each."""

    def __init__(self, size, use_reentrant):
        self.size, self.use_reentrant = size, use_reentrant

    def __call__(self, blocks, x):
        for first in range(0, len(blocks), self.size):
            segment = nn.Sequential(*blocks[first : first + self.size])
            x = checkpoint(segment, x, use_reentrant=self.use_reentrant)
        return x


class Sequence:
    """Torch's own way to cut a sequence into checkpoints; the last part is none."""

    def __init__(self, use_reentrant):
        self.use_reentrant = use_reentrant

    def __call__(self, blocks, x):
        return checkpoint_sequential(
            list(blocks), 2, x, use_reentrant=self.use_reentrant
        )


class Order:
    """The blocks of these numbers, some perhaps twice or never."""

    def __init__(self, *numbers):
        self.numbers = numbers

    def __call__(self, blocks, x):
        for i in self.numbers:
            x = blocks[i](x)
        return x


HOW = {
    "plain": Order(0, 1, 2, 3),
    **{
        f"checkpoints of {size}{', reentrant' if reentrant else ''}": Segments(
            size, reentrant
        )
        for size in (1, 2, 4)
        for reentrant in (False, True)
    },
    "checkpoint_sequential": Sequence(False),
    "checkpoint_sequential, reentrant": Sequence(True),
    "one twice in a row": Order(0, 1, 1, 2, 3),
    "one again at the end": Order(0, 1, 2, 3, 1),
    "the first again at the end": Order(0, 1, 2, 3, 0),
    "all twice": Order(0, 1, 2, 3, 0, 1, 2, 3),
}


# --- four ways to shard, and one process ---


def shard(kind, model, group, names):
    """Return what is run; its parameters are sharded by `names` and the root."""
    if kind == "mini":
        fsdp_options.fully_shard(model, group, modules=["", *names])
    elif kind == "mini, stem replicated":
        fsdp_options.fully_shard(model, group, modules=names)
    elif kind == "flat mini":
        fully_shard_flat(model, group, modules=names)
    elif kind == "FSDP2":
        mesh = DeviceMesh.from_group(group, "cpu")
        for name in [*sorted(names, key=len, reverse=True), ""]:
            fully_shard(model.get_submodule(name), mesh=mesh)
    else:
        named = [model.get_submodule(name) for name in names]
        policy = CustomPolicy(lambda module: any(module is each for each in named))
        cpu = torch.device("cpu")
        return FullyShardedDataParallel(
            model, process_group=group, auto_wrap_policy=policy, device_id=cpu
        )
    return model


def inputs(rank):
    return torch.linspace(-1, 1, 8).view(2, 4) * (rank + 1)


def losses_and_calls(rank, kind, how, names):
    """Train three steps; return the losses, and the calls of the last step."""
    model = shard(kind, Model(HOW[how]), rank.group, names)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(3):
        with CollectiveCounter() as sent:
            optimizer.zero_grad()
            loss = model(inputs(rank.rank)).pow(2).mean()
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
    return losses, sent.counts()


def alone(how):
    """Return the losses that ranks 0 and 1 have of a model in one process."""
    model = Model(HOW[how])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        both = [model(inputs(rank)).pow(2).mean() for rank in range(2)]
        (sum(both) / 2).backward()
        optimizer.step()
        losses.append([loss.item() for loss in both])
    return [list(of_rank) for of_rank in zip(*losses, strict=True)]


@pytest.mark.parametrize("how", quick_each(HOW, lambda how: "reentrant" in how))
@pytest.mark.parametrize("names", [BLOCKS, BLOCKS + LEAVES], ids=["blocks", "nested"])
@pytest.mark.parametrize(
    ("ours", "theirs"), [("mini", "FSDP2"), ("flat mini", "FSDP1")]
)
@pytest.mark.filterwarnings("ignore:.*FSDP:UserWarning")
def test_as_many_calls_as_torch_makes_and_the_losses_of_one_process(
    pool2, ours, theirs, how, names
):
    want = pool2.run(losses_and_calls, theirs, how, names)
    got = pool2.run(losses_and_calls, ours, how, names)
    for (losses, calls), (_, expected), of_rank in zip(
        got, want, alone(how), strict=True
    ):
        assert losses == pytest.approx(of_rank, rel=1e-5)
        assert calls == expected


def world_of_one(rank, kind):
    groups = [dist.new_group([each]) for each in range(rank.world_size)]
    alone = replace(rank, group=groups[rank.rank], world_size=1)
    return losses_and_calls(alone, kind, "plain", BLOCKS)


def test_a_world_of_one_sends_nothing_to_itself(pool2):
    kinds = ("FSDP2", "mini", "mini, stem replicated")
    theirs, *ours = (pool2.run(world_of_one, kind)[0] for kind in kinds)
    assert ours == [theirs, theirs]
    assert theirs[1] == {}


# --- a backward that does not come to its end ---


class Refuses(torch.autograd.Function):
    """Identity, whose backward raises as long as `refuse` says so."""

    refuse = True

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        if Refuses.refuse:
            raise ArithmeticError("refused")
        return grad


def refuse_once(blocks, x):
    for block in blocks[:2]:
        x = block(x)
    x = Refuses.apply(x)
    for block in blocks[2:]:
        x = block(x)
    return x


def go_on_after_the_error(rank, kind, again):
    model = shard(kind, Model(refuse_once), rank.group, BLOCKS)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    Refuses.refuse = True
    with pytest.raises(ArithmeticError):
        model(inputs(rank.rank)).sum().backward()
    Refuses.refuse = False
    if again == "step":
        optimizer.step()
    with torch.set_grad_enabled(again != "evaluate"):
        return model(inputs(rank.rank)).shape


@pytest.mark.parametrize("kind", ["mini", "flat mini"])
@pytest.mark.parametrize("again", ["train", "step", "evaluate"])
def test_nothing_follows_a_backward_that_was_cut_short(pool2, kind, again):
    with pytest.raises(RankFailure, match="RuntimeError: an earlier backward was cut"):
        pool2.run(go_on_after_the_error, kind, again)

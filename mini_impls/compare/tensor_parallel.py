"""The tensor parallel mini beside Megatron's layers and torch's DTensor."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    loss_parallel,
    parallelize_module,
)

from mini_impls import tensor_parallel
from mini_impls.compare import megatron
from mini_impls.compare.sides import (
    Comparison,
    Formula,
    Formulas,
    Held,
    SetPhase,
    Sides,
    Tolerance,
    optimizer_state,
    trained,
)
from mini_impls.demos.formulas import get_tensor_parallel_traffic
from mini_impls.launch import Rank
from mini_impls.model import GPT, Batch, GPTConfig, build_model, compute_loss
from mini_impls.vocab_parallel_loss import vocab_parallel_cross_entropy
from readerkit.content.vocabulary import Category, SideName

ComputeLoss = Callable[[Tensor, Tensor], Tensor]


class TensorParallelSide:
    """A side whose ranks see the same batch and hold slices of the weights."""

    def __init__(
        self,
        gpt: nn.Module,
        compute_loss: ComputeLoss,
        learning_rate: float,
        around: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        self.gpt, self.compute_loss, self.around = gpt, compute_loss, around
        # All in one call, as a GPU's default is, may not mix DTensors with others.
        params = gpt.parameters()
        self.optimizer = torch.optim.AdamW(params, learning_rate, foreach=False)

    def step(self, batch: Batch, set_phase: SetPhase) -> float:
        """Forward, backward, update."""
        tokens, labels = batch
        self.optimizer.zero_grad()
        with self.around():
            set_phase("forward")
            loss = self.compute_loss(self.gpt(tokens), labels)
            set_phase("backward")
            loss.backward()
        self.finish_gradients()
        set_phase("optimizer")
        self.optimizer.step()
        return local(loss).item()

    def finish_gradients(self) -> None:
        """Do what is left to do between backward and the optimizer: here nothing."""

    def parameters(self) -> dict[str, Tensor]:
        """Return the slices."""
        return {name: local(p) for name, p in self.gpt.named_parameters()}

    def gradients(self) -> dict[str, Tensor]:
        """Return the slices of the gradients."""
        named = self.gpt.named_parameters()
        return {n: like(p.grad, p) for n, p in named if p.grad is not None}

    def held(self) -> Held:
        """Return the slices."""
        return {
            "parameters": list(self.parameters().values()),
            "gradients": [
                local(p.grad) for p in self.gpt.parameters() if p.grad is not None
            ],
            "optimizer state": optimizer_state(self.optimizer),
        }

    def watched(self) -> Iterable[Tensor]:
        """Return nothing: no collective waits for a gradient of a weight."""
        return ()


def local(tensor: Tensor) -> Tensor:
    """Return what this rank holds."""
    tensor = tensor.detach()
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def like(grad: Tensor, param: Tensor) -> Tensor:
    """Return the part of a gradient that belongs to what this rank holds."""
    if isinstance(grad, DTensor) and isinstance(param, DTensor):
        grad = grad.redistribute(placements=param.placements)
    return local(grad)


def build_mini(rank: Rank, comparison: Comparison) -> TensorParallelSide:
    """Return the mini."""
    gpt = build_model(comparison.config).to(rank.device)
    tensor_parallel.tensor_parallel(gpt, rank.group)

    def loss(logits: Tensor, labels: Tensor) -> Tensor:
        each = vocab_parallel_cross_entropy(logits, labels, rank.group)
        return each.mean()

    return TensorParallelSide(gpt, loss, comparison.learning_rate)


def formulas(comparison: Comparison, gpt: nn.Module, rank: Rank) -> Formulas:
    """Return the all-reduces of a step, and slices of everything."""
    config = comparison.config
    tokens = comparison.rows_per_rank * config.max_sequence_length
    traffic = get_tensor_parallel_traffic(config, tokens, rank.world_size)
    text = (
        f"({4 * config.num_layers} + 2 activations) x 4 B x "
        f"{tokens * config.hidden_size:,} + 3 losses x 4 B x {tokens:,}"
    )
    sent = {op: Formula(n, text) for op, n in traffic.items()}
    params = list(gpt.parameters())
    kept = trained(params, "sliced parameters")
    return Formulas.alike(sent, kept)


# --- Megatron ---


class MegatronLayers:
    """Megatron's layers, filled from ours and called like ours."""

    def __init__(
        self, config: GPTConfig, world_size: int, *, sequence_parallel: bool = False
    ) -> None:
        layers: Any = import_module("megatron.core.tensor_parallel.layers")
        transformer: Any = import_module("megatron.core.transformer")
        self.config = transformer.TransformerConfig(
            num_layers=config.num_layers,
            hidden_size=config.hidden_size,
            num_attention_heads=config.num_attention_heads,
            use_cpu_initialization=True,
            perform_initialization=False,
            sequence_parallel=sequence_parallel,
            tensor_model_parallel_size=world_size,
        )

        class Column(layers.ColumnParallelLinear):  # type: ignore[misc]
            """Without the bias that Megatron returns for later fusion."""

            def forward(self, input_: Tensor) -> Any:
                return super().forward(input_)[0]

        class Row(layers.RowParallelLinear):  # type: ignore[misc]
            """The same."""

            def forward(self, input_: Tensor) -> Any:
                return super().forward(input_)[0]

        self._usual = {"config": self.config, "init_method": nn.init.normal_}
        self._column, self._row = Column, Row
        self._embedding = layers.VocabParallelEmbedding

    def column(self, mini: Any, world_size: int) -> Any:
        """Return a column-parallel layer with the weights of the mini's."""
        rows, columns = mini.weight.shape
        bias = mini.bias is not None
        sizes = (columns, rows * world_size)
        layer = self._column(*sizes, bias=bias, gather_output=False, **self._usual)
        return self._fill(mini, layer)

    def row(self, mini: Any, world_size: int) -> Any:
        """Return a row-parallel layer with the weights of the mini's."""
        rows, columns = mini.weight.shape
        options = {"input_is_parallel": True, "skip_bias_add": False, **self._usual}
        bias = mini.bias is not None
        layer = self._row(columns * world_size, rows, bias=bias, **options)
        return self._fill(mini, layer)

    def embedding(self, mini: Any, world_size: int) -> Any:
        """Return a vocabulary-parallel embedding with the weights of the mini's."""
        rows, columns = mini.weight.shape
        layer = self._embedding(rows * world_size, columns, **self._usual)
        return self._fill(mini, layer)

    def _fill(self, mini: nn.Module, layer: Any) -> Any:
        weights = dict(mini.named_parameters())
        layer.to(next(mini.parameters()).device)
        with torch.no_grad():
            for name, param in layer.named_parameters():
                param.copy_(weights[name])
        return layer


def build_megatron(rank: Rank, comparison: Comparison) -> Sides:
    """Return the mini and the same model of Megatron's layers."""
    groups = megatron.start(rank, tensor=rank.world_size)
    cross_entropy: Any = import_module("megatron.core.tensor_parallel.cross_entropy")
    gpt = build_model(comparison.config).to(rank.device)
    tensor_parallel.tensor_parallel(gpt, rank.group)
    layers = MegatronLayers(comparison.config, rank.world_size)
    replace_layers(gpt, layers, rank.world_size)

    def loss(logits: Tensor, labels: Tensor) -> Tensor:
        each: Tensor = cross_entropy.vocab_parallel_cross_entropy(logits, labels)
        return each.mean()

    upstream = TensorParallelSide(gpt, loss, comparison.learning_rate)
    mini = build_mini(rank, comparison)
    expected = formulas(comparison, mini.gpt, rank)
    return Sides(mini, upstream, {rank.group.group_name: "tp", **groups}, expected)


def replace_layers(gpt: GPT, layers: MegatronLayers, world_size: int) -> None:
    """Put Megatron's layers where the mini's are."""
    for module in list(gpt.modules()):
        for name, child in list(module.named_children()):
            layer = None
            if isinstance(child, tensor_parallel.ColumnParallelLinear):
                layer = layers.column(child, world_size)
            elif isinstance(child, tensor_parallel.RowParallelLinear):
                layer = layers.row(child, world_size)
            elif isinstance(child, tensor_parallel.VocabParallelEmbedding):
                layer = layers.embedding(child, world_size)
            if layer is not None:
                setattr(module, name, layer)


# --- DTensor ---


def build_dtensor(rank: Rank, comparison: Comparison) -> Sides:
    """Return the mini and the same model parallelized with DTensor."""
    gpt = build_model(comparison.config).to(rank.device)
    mesh = DeviceMesh.from_group(rank.group, rank.device.type)
    plan: dict[str, Any] = {
        "embedding.word_embeddings": RowwiseParallel(input_layouts=Replicate()),
        "output_layer": ColwiseParallel(
            output_layouts=Shard(-1), use_local_output=False
        ),
    }
    for i in range(comparison.config.num_layers):
        plan[f"layers.{i}.self_attention.linear_qkv"] = ColwiseParallel()
        plan[f"layers.{i}.self_attention.linear_proj"] = RowwiseParallel()
        plan[f"layers.{i}.mlp.linear_fc1"] = ColwiseParallel()
        plan[f"layers.{i}.mlp.linear_fc2"] = RowwiseParallel()
    parallelize_module(gpt, mesh, plan)
    upstream = TensorParallelSide(
        gpt, compute_loss, comparison.learning_rate, loss_parallel
    )
    mini = build_mini(rank, comparison)
    expected = formulas(comparison, mini.gpt, rank)
    # The gradient of a looked-up row is the same on every rank: DTensor keeps all rows.
    whole = Formula(
        expected.held["upstream"]["gradients"].bytes + embedding_rest(mini.gpt, rank),
        expected.held["upstream"]["gradients"].text + " + the embedding's other rows",
    )
    kept = {**expected.held["upstream"], "gradients": whole}
    held: Mapping[SideName, Mapping[Category, Formula]]
    held = {"mini": expected.held["mini"], "upstream": kept}
    expected = Formulas(expected.payload, held)
    return Sides(mini, upstream, {rank.group.group_name: "tp"}, expected)


def embedding_rest(gpt: nn.Module, rank: Rank) -> int:
    """Return the bytes of the rows of the word embedding that other ranks hold."""
    assert isinstance(gpt, GPT)
    mine = gpt.embedding.word_embeddings.weight
    return mine.nbytes * (rank.world_size - 1)


# --- both ---


def check(world_size: int) -> None:
    """Raise ValueError where the model cannot be cut so."""
    tensor_parallel.check_sizes(GPTConfig(), world_size)


def resize(comparison: Comparison, world_size: int) -> Comparison:
    """Return the comparison with a query group a rank or more.

    Fewer are a matter of Megatron's attention, and here are its layers alone.
    """
    groups = max(comparison.config.num_query_groups, world_size)
    return replace(comparison, config=GPTConfig(num_query_groups=groups))


TOLERANCE = Tolerance(1e-4, "the loss is put together in another order of operations")
COMPARISONS = (
    Comparison(
        mini="tensor_parallel",
        upstream="megatron",
        build=build_megatron,
        tolerance=TOLERANCE,
        data_parallel=False,
        upstreams=("megatron",),
        check=check,
        resize=resize,
    ),
    Comparison(
        mini="tensor_parallel",
        upstream="dtensor",
        build=build_dtensor,
        tolerance=TOLERANCE,
        data_parallel=False,
        check=check,
        resize=resize,
    ),
)

"""Mixed precision beside Megatron's optimizer, on a model that ranks share."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from mini_impls import mixed_precision, tensor_parallel
from mini_impls.compare import megatron
from mini_impls.compare.mixed_precision_sizes import (
    GROWTH,
    HALF,
    INTERVAL,
    OF_ONE_PROCESS,
    SCALE,
    kept,
)
from mini_impls.compare.sides import (
    Alone,
    Comparison,
    Formula,
    Formulas,
    Held,
    SetPhase,
    Sides,
    Tolerance,
    optimizer_state,
)
from mini_impls.compare.tensor_parallel import (
    ComputeLoss,
    MegatronLayers,
    check,
    replace_layers,
    resize,
)
from mini_impls.demos.formulas import get_tensor_parallel_traffic
from mini_impls.launch import Rank
from mini_impls.mixed_precision_scaler import DynamicGradScaler
from mini_impls.model import GPT, Batch, GPTConfig, build_model
from mini_impls.vocab_parallel_loss import vocab_parallel_cross_entropy

CLIP = 0.5


def build_plain(config: GPTConfig) -> GPT:
    """Return the model without the biases of column-parallel layers.

    Megatron's adds such a bias to a product that has been rounded to float16, the
    mini's before: that is of layers, and here optimizers are compared.
    """
    gpt = build_model(config)
    for layer in gpt.layers:
        for name in ("self_attention.linear_qkv", "mlp.linear_fc1"):
            layer.get_submodule(name).register_parameter("bias", None)
    return gpt


def masked(grads: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return gradients whose overflows are seen as such: they have no difference."""
    seen = {}
    for name, grad in grads.items():
        is_finite = torch.isfinite(grad)
        seen[name] = torch.where(is_finite, grad, 0.0)
        seen[f"{name}, is finite"] = is_finite.float()
    return seen


class MixedSide:
    """A model in 16 bits, gradients and main weights in 32."""

    def __init__(
        self,
        gpt: nn.Module,
        model: nn.Module,
        optimizer: Any,
        loss: ComputeLoss,
        main_grads: Callable[[], dict[str, Tensor]],
        mains: Callable[[], list[Tensor]],
    ) -> None:
        self.gpt, self.model, self.optimizer, self.loss = gpt, model, optimizer, loss
        self.main_grads, self.mains = main_grads, mains

    def step(self, batch: Batch, set_phase: SetPhase) -> float:
        """Forward, backward of the scaled loss, and an update unless it overflowed."""
        tokens, labels = batch
        self.zero_grad()
        set_phase("forward")
        loss = self.loss(self.model(tokens), labels)
        scaled = self.optimizer.scale_loss(loss)
        set_phase("backward")
        scaled.backward()
        self.finish_gradients()
        set_phase("optimizer")
        self.optimizer.step()
        return loss.item()

    def zero_grad(self) -> None:
        """Let the gradients of a step begin at zero."""
        self.optimizer.zero_grad()

    def finish_gradients(self) -> None:
        """Do what is left to do between backward and the optimizer: here nothing."""

    def parameters(self) -> dict[str, Tensor]:
        """Return the slices, in 16 bits."""
        return {name: p.detach() for name, p in self.gpt.named_parameters()}

    def gradients(self) -> dict[str, Tensor]:
        """Return the slices of the gradients in float32, and where they are finite."""
        return masked(self.main_grads())

    def held(self) -> Held:
        """Return the slices; main weights count as state of the optimizer."""
        return {
            "parameters": list(self.parameters().values()),
            "gradients": list(self.main_grads().values()),
            "optimizer state": [
                *self.mains(),
                *optimizer_state(self.optimizer.optimizer),
            ],
        }

    def watched(self) -> list[Tensor]:
        """Return nothing: no collective waits for a gradient of a weight."""
        return []


# --- Megatron ---


class MiniMixedSide(MixedSide):
    """Ours."""

    def finish_gradients(self) -> None:
        """Reduce what backward added up: over a group of one rank."""
        self.optimizer.main_grads.finish_grad_sync()


def build_mini(
    rank: Rank, comparison: Comparison, data_parallel: dist.ProcessGroup
) -> MixedSide:
    """Return the mini around slices of the model."""
    gpt = build_plain(comparison.config).to(rank.device)
    whole = {name: param.shape for name, param in gpt.named_parameters()}
    tensor_parallel.tensor_parallel(gpt, rank.group)
    named = dict(gpt.named_parameters())
    replicated = [p for name, p in named.items() if p.shape == whole[name]]
    model = mixed_precision.Float16Module(gpt, HALF)
    main_grads = mixed_precision.MainGrads(gpt.parameters(), data_parallel)
    optimizer = mixed_precision.Float16Optimizer(
        torch.optim.AdamW(gpt.parameters(), comparison.learning_rate),
        main_grads,
        DynamicGradScaler(
            SCALE,
            growth_factor=GROWTH,
            backoff_factor=1 / GROWTH,
            growth_interval=INTERVAL,
        ),
        rank.group,
        clip_grad=CLIP,
        duplicates=replicated if rank.rank else [],
    )

    def loss(logits: Tensor, labels: Tensor) -> Tensor:
        return vocab_parallel_cross_entropy(logits, labels, rank.group).mean()

    return MiniMixedSide(
        gpt,
        model,
        optimizer,
        loss,
        lambda: {name: main_grads.main_grad[p] for name, p in named.items()},
        lambda: list(optimizer.main_params.values()),
    )


class MegatronMixedSide(MixedSide):
    """Megatron's optimizer, around its module in 16 bits and its gradient buffers."""

    ddp: Any

    def zero_grad(self) -> None:
        """Zero the buffers and the gradients, as Megatron's training loop does."""
        self.ddp.zero_grad_buffer()
        super().zero_grad()

    def finish_gradients(self) -> None:
        """Reduce what backward added up: over a group of one rank."""
        self.ddp.finish_grad_sync()


def build_megatron(rank: Rank, comparison: Comparison) -> Sides:
    """Return the mini, and Megatron's layers, module and optimizer."""
    groups = megatron.start(rank, tensor=rank.world_size)
    distributed: Any = import_module("megatron.core.distributed")
    module: Any = import_module("megatron.core.transformer.module")
    optimizers: Any = import_module("megatron.core.optimizer.optimizer")
    scalers: Any = import_module("megatron.core.optimizer.grad_scaler")
    settings: Any = import_module("megatron.core.optimizer.optimizer_config")
    state: Any = import_module("megatron.core.parallel_state")
    cross_entropy: Any = import_module("megatron.core.tensor_parallel.cross_entropy")
    marks: Any = import_module("megatron.core.tensor_parallel.layers")

    config = comparison.config
    gpt = build_plain(config).to(rank.device)
    whole = {name: param.shape for name, param in gpt.named_parameters()}
    tensor_parallel.tensor_parallel(gpt, rank.group)
    layers = MegatronLayers(config, rank.world_size)
    replace_layers(gpt, layers, rank.world_size)
    for name, param in gpt.named_parameters():
        if param.shape != whole[name]:  # which Megatron's own initialization says
            dim = next(i for i, n in enumerate(param.shape) if n != whole[name][i])
            marks.set_defaults_if_not_set_tensor_model_parallel_attributes(param)
            param.tensor_model_parallel = True  # type: ignore[attr-defined]
            param.partition_dim = dim  # type: ignore[attr-defined]
    layers.config.fp16 = True
    model = distributed.DistributedDataParallel(
        layers.config,
        distributed.DistributedDataParallelConfig(grad_reduce_in_fp32=True),
        module.Float16Module(layers.config, gpt),
    )
    optimizer = optimizers.Float16OptimizerWithFloat16Params(
        torch.optim.AdamW(gpt.parameters(), comparison.learning_rate),
        settings.OptimizerConfig(fp16=True, params_dtype=HALF, clip_grad=CLIP),
        scalers.DynamicGradScaler(
            initial_scale=SCALE,
            min_scale=1.0,
            growth_factor=GROWTH,
            backoff_factor=1 / GROWTH,
            growth_interval=INTERVAL,
            hysteresis=2,
        ),
        lambda *args: None,
    )
    optimizer.grad_stats_parallel_group = state.get_model_parallel_group()
    optimizer.tp_group = state.get_tensor_model_parallel_group()

    def loss(logits: Tensor, labels: Tensor) -> Tensor:
        each: Tensor = cross_entropy.vocab_parallel_cross_entropy(logits, labels)
        return each.mean()

    params: dict[str, Any] = dict(gpt.named_parameters())
    upstream = MegatronMixedSide(
        gpt,
        model,
        optimizer,
        loss,
        lambda: {name: p.main_grad for name, p in params.items()},
        lambda: [main for each in optimizer.fp32_from_float16_groups for main in each],
    )
    upstream.ddp = model
    data_parallel = state.get_data_parallel_group(with_context_parallel=True)
    mini = build_mini(rank, comparison, data_parallel)
    names = {
        rank.group.group_name: "tp",
        # Of tensor and pipeline parallelism together: here the same ranks.
        optimizer.grad_stats_parallel_group.group_name: "tp",
        data_parallel.group_name: "dp",
        **groups,
    }
    return Sides(mini, upstream, names, sliced_formulas(comparison, mini.gpt, rank))


def sliced_formulas(comparison: Comparison, gpt: nn.Module, rank: Rank) -> Formulas:
    """Return activations in two bytes, losses and two numbers in four; main weights."""
    config = comparison.config
    tokens = comparison.rows_per_rank * config.max_sequence_length
    of_losses, params = 3 * 4 * tokens, list(gpt.parameters())
    numel = sum(param.numel() for param in params)
    whole = get_tensor_parallel_traffic(config, tokens, rank.world_size)["all_reduce"]
    activations = (whole - of_losses) // 2
    text = (
        f"({4 * config.num_layers} + 2 activations) x 2 B x "
        f"{tokens * config.hidden_size:,} + 3 losses x 4 B x {tokens:,} + 4 B x "
        f"{numel:,} gradients, to this rank itself + 4 B: was there an overflow? + 4 B "
        "of the norm"
    )
    together = activations + of_losses + 4 * numel + 4 + 4
    return Formulas.alike({"all_reduce": Formula(together, text)}, kept(params))


OF_TWO_RANKS = Tolerance(0.0, "two ranks: a + b = b + a, each rounded in one way")
COMPARISONS = (
    Comparison(
        mini="mixed_precision",
        # Of two copies of a model in 16 bits only the gradients are sent, in 32.
        covers=frozenset({"mixed precision"}),
        upstream="megatron",
        build=build_megatron,
        tolerance=Tolerance(
            2e-2,
            "sums of more than two ranks are rounded to float16 in another order, and "
            "AdamW divides small sums by their size",
        ),
        of_two_ranks=OF_TWO_RANKS,
        one_process_tolerance=OF_ONE_PROCESS,
        data_parallel=False,
        uneven=True,
        upstreams=("megatron",),
        shims=("current_device", "cuda_is_cpu", "cuda_types"),
        alone=lambda config, _, device: Alone(build_plain(config).to(device)),
        max_norm=CLIP,
        check=check,
        resize=resize,
    ),
)

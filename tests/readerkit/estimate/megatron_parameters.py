"""`python megatron_parameters.py FOLDER < CASES`: what ranks of Megatron really hold.

Each case is a shape, a layout and a pipeline rank. Megatron's own model of that rank is
built, in one process that takes itself for a rank of many, and its parameters counted:
those of experts apart.
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore

from readerkit.estimate.layout import Layout
from readerkit.estimate.shape import Shape


def counted(shape: Shape, layout: Layout, pp_rank: int) -> tuple[int, int]:
    """Return the parameters of a pipeline rank's first GPU: dense, and of experts."""
    from megatron.core import parallel_state
    from megatron.core.models.gpt.gpt_model import GPTModel

    chunks = layout.virtual_stages if layout.virtual_stages > 1 else None
    of_stage = layout.dp * layout.tp * layout.cp
    dist.init_process_group(
        "fake",
        store=FakeStore(),
        rank=pp_rank * of_stage,
        world_size=of_stage * layout.pp,
    )
    parallel_state.initialize_model_parallel(
        layout.tp,
        layout.pp,
        chunks,
        context_parallel_size=layout.cp,
        expert_model_parallel_size=layout.ep,
        expert_tensor_parallel_size=layout.etp or layout.tp,
    )
    config = configured(shape, layout, chunks)
    dense = experts = 0
    for chunk in range(chunks or 1):
        of_chunk = {"vp_stage": chunk if chunks else None}
        if chunks:
            parallel_state.set_virtual_pipeline_model_parallel_rank(chunk)
        ends = {"ignore_virtual": False, **of_chunk}
        model = GPTModel(
            config,
            layers(shape, config, **of_chunk),
            vocab_size=int(shape.padded_vocab(layout.tp)),
            max_sequence_length=shape.positions or 64,
            pre_process=parallel_state.is_pipeline_first_stage(**ends),
            post_process=parallel_state.is_pipeline_last_stage(**ends),
            share_embeddings_and_output_weights=shape.tied_embeddings,
            position_embedding_type="learned_absolute" if shape.positions else "rope",
            **of_chunk,
        )
        for name, parameter in model.named_parameters():
            if ".experts." in name and "shared" not in name:
                experts += parameter.numel()
            else:
                dense += parameter.numel()
    parallel_state.destroy_model_parallel()
    dist.destroy_process_group()
    return dense, experts


def configured(shape: Shape, layout: Layout, chunks: int | None) -> Any:
    """Return Megatron's configuration of a shape and a layout."""
    from megatron.core.transformer.transformer_config import TransformerConfig

    experts = {
        "num_moe_experts": shape.experts,
        "moe_router_topk": shape.experts_per_token,
        "moe_ffn_hidden_size": shape.expert_ffn,
        "moe_shared_expert_intermediate_size": shape.shared_ffn or None,
        "moe_token_dispatcher_type": "alltoall",
        "moe_layer_freq": [int(shape.has_experts(i)) for i in range(shape.layers)],
    }
    given = layout.first_layers or layout.last_layers
    # Embedding and head are then counted as a layer each, at the two ends.
    is_uneven = not given and shape.layers % (layout.pp * layout.virtual_stages) > 0
    return TransformerConfig(
        num_layers=shape.layers,
        hidden_size=shape.hidden,
        num_attention_heads=shape.heads,
        num_query_groups=shape.kv_heads,
        kv_channels=shape.head_dim,
        ffn_hidden_size=shape.ffn,
        gated_linear_unit=shape.gated_mlp,
        add_bias_linear=shape.mlp_bias,
        add_qkv_bias=shape.qkv_bias,
        normalization="LayerNorm" if shape.norm == "layernorm" else "RMSNorm",
        qk_layernorm=shape.qk_norm,
        tensor_model_parallel_size=layout.tp,
        pipeline_model_parallel_size=layout.pp,
        virtual_pipeline_model_parallel_size=chunks,
        expert_model_parallel_size=layout.ep,
        expert_tensor_parallel_size=layout.etp or layout.tp,
        num_layers_in_first_pipeline_stage=layout.first_layers or None,
        num_layers_in_last_pipeline_stage=layout.last_layers or None,
        account_for_embedding_in_pipeline_split=is_uneven,
        account_for_loss_in_pipeline_split=is_uneven,
        pipeline_dtype=torch.float32,
        use_cpu_initialization=True,
        perform_initialization=False,
        **(experts if shape.experts else {}),
    )


def layers(shape: Shape, config: Any, vp_stage: int | None) -> Any:
    """Return what the layers of a chunk are made of."""
    from megatron.core.models.gpt import gpt_layer_specs as specs

    if shape.experts:
        return specs.get_gpt_decoder_block_spec(config, False, vp_stage=vp_stage)
    return specs.get_gpt_layer_local_spec(
        qk_layernorm=shape.qk_norm, normalization=config.normalization
    )


def main() -> None:
    warnings.filterwarnings("ignore")
    sys.path.insert(0, sys.argv[1])
    new_group = dist.new_group

    def fake_group(ranks: Any = None, **options: Any) -> Any:
        return new_group(ranks=ranks, backend="fake")

    # No GPU is there; nothing of a model is asked to run.
    with (
        patch.object(torch.cuda, "current_device", lambda: "cpu"),
        patch.object(torch.cuda, "Stream", lambda *args, **options: None),
        patch.object(torch.cuda, "Event", lambda *args, **options: None),
        patch.object(torch.Tensor, "cuda", lambda self, *args, **options: self),
        patch.object(dist, "new_group", fake_group),
    ):
        found = [
            counted(Shape.parse(shape), Layout.parse(layout), rank)
            for shape, layout, rank in json.load(sys.stdin)
        ]
    print(json.dumps(found))


if __name__ == "__main__":
    main()

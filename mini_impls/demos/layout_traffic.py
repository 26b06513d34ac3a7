"""What a rank of a layout should send in a step: for demos, comparisons, tests."""

from collections import Counter

from mini_impls.layout_stages import LayoutConfig, LayoutGroups, LayoutStage
from mini_impls.layout_train import split_params

FLOAT32 = 4


def get_layout_traffic(
    config: LayoutConfig,
    stage: LayoutStage,
    groups: LayoutGroups,
    *,
    microbatches: int,
    rows: int,
) -> dict[str, int]:
    """Payload bytes of each operation in one step of one rank, in fp32.

    `rows` are the sequences of a microbatch. What an operation moves is the whole
    tensor: what an all-gather returns, what a reduce-scatter takes.
    """
    tp, cp, ep = (g.size() for g in (groups.layer.tp, groups.layer.cp, groups.layer.ep))
    tokens = rows * config.max_sequence_length // cp  # of a microbatch, on a rank
    hidden = tokens * config.hidden_size
    experts = config.num_moe_experts
    layer: Counter[str] = Counter()  # elements of one layer and microbatch
    if tp > 1:
        # f and g of attention, and of the MLP where it is cut.
        layer["all_reduce"] += (2 if experts else 4) * hidden
    if cp > 1:
        keys = 2 * config.num_query_groups // tp * config.kv_channels
        layer["all_gather"] += keys * tokens * cp
        layer["reduce_scatter"] += keys * tokens * cp
    if experts and tp > 1:
        layer["all_reduce"] += experts * config.hidden_size  # the router's gradient
        layer["all_gather"] += 2 * hidden  # outputs, and gradients of the tokens
    if experts and ep > 1:
        to_experts = tokens // tp * ep * (config.hidden_size + experts)
        home = tokens // tp * ep * config.hidden_size
        layer["all_gather"] += to_experts + home
        layer["reduce_scatter"] += home + to_experts
    passes = microbatches * len(stage.layers)
    sent = Counter({op: FLOAT32 * passes * count for op, count in layer.items()})
    ends = stage.pre_process + stage.post_process
    if ends < 2:
        messages = microbatches * (2 - ends)
        sent["send"] = sent["recv"] = FLOAT32 * messages * hidden
    for params, group in zip(
        split_params(stage), (groups.dp_cp, groups.expert_dp), strict=True
    ):
        if group.size() > 1:
            sent["all_reduce"] += FLOAT32 * sum(param.numel() for param in params)
    return {op: count for op, count in sent.items() if count}

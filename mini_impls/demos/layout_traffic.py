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
    total: Counter[str] = Counter()
    for traffic, _ in get_traffic_of_groups(
        config, stage, groups, microbatches=microbatches, rows=rows
    ):
        total.update(traffic)
    return {op: count for op, count in total.items() if count}


def get_traffic_of_groups(
    config: LayoutConfig,
    stage: LayoutStage,
    groups: LayoutGroups,
    *,
    microbatches: int,
    rows: int,
) -> list[tuple[dict[str, int], int]]:
    """Return the same for each group, and how many ranks it has."""
    tp, cp, ep = (g.size() for g in (groups.layer.tp, groups.layer.cp, groups.layer.ep))
    tokens = rows * config.max_sequence_length // cp  # of a microbatch, on a rank
    hidden = tokens * config.hidden_size
    experts = config.num_moe_experts
    # Elements of one layer and microbatch.
    of_tp, of_cp, of_ep = (Counter[str]() for _ in range(3))
    if tp > 1:
        # f and g of attention, and of the MLP where it is cut.
        of_tp["all_reduce"] += (2 if experts else 4) * hidden
    if cp > 1:
        keys = 2 * config.num_query_groups // tp * config.kv_channels
        of_cp["all_gather"] += keys * tokens * cp
        of_cp["reduce_scatter"] += keys * tokens * cp
    if experts and tp > 1:
        of_tp["all_reduce"] += experts * config.hidden_size  # the router's gradient
        of_tp["all_gather"] += 2 * hidden  # outputs, and gradients of the tokens
    if experts and ep > 1:
        to_experts = tokens // tp * ep * (config.hidden_size + experts)
        home = tokens // tp * ep * config.hidden_size
        of_ep["all_gather"] += to_experts + home
        of_ep["reduce_scatter"] += home + to_experts
    passes = FLOAT32 * microbatches * len(stage.layers)
    found = [
        ({op: passes * count for op, count in layer.items()}, ranks)
        for layer, ranks in ((of_tp, tp), (of_cp, cp), (of_ep, ep))
    ]
    ends = stage.pre_process + stage.post_process
    if ends < 2:
        messages = FLOAT32 * microbatches * (2 - ends) * hidden
        found.append(({"send": messages, "recv": messages}, groups.pp.size()))
    for params, group in zip(
        split_params(stage), (groups.dp_cp, groups.expert_dp), strict=True
    ):
        if group.size() > 1:
            summed = FLOAT32 * sum(param.numel() for param in params)
            found.append(({"all_reduce": summed}, group.size()))
    return found

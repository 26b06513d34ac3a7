"""Plausible wrong rebuilds: of each section some of its own lines, put wrong."""

WRONG = {
    "ddp/mean": (("self.grad_data *= self.gradient_scaling_factor", "pass"),),
    "ddp/overlap": (("self.start_grad_sync()", "pass"),),
    "ddp/buckets": (("reversed(params)", "params"),),
    "zero/partition": (("rank = sizes.index(min(sizes))", "rank = 0"),),
    "zero/share": (("if owner == rank", "if owner == rank == 0"),),
    "fsdp/gather": (("self.is_unsharded = True", "pass"),),
    "fsdp/scatter": (("dist.ReduceOp.AVG", "dist.ReduceOp.SUM"),),
    "layout/groups": (("if name not in free", "if name in free"),),
    "layout/experts": (
        (
            "weight = move(self.router.weight, stay, all_reduce, tp)",
            "weight = self.router.weight",
        ),
    ),
    "muon/deal": (("loop = ranks + ranks[::-1]", "loop = ranks"),),
    "muon/rows": (("whole[: self.num_rows[p]]", "mine"),),
    "mixed_precision/scale": (("self.hysteresis_tracker <= 0", "True"),),
    "mixed_precision/unscale": (("grad *= inv_scale", "pass"),),
    "fsdp_flat/reduce": (("padded /= self.gradient_predivide_factor", "pass"),),
    "tensor_parallel/row": (
        (
            "output = reduce_from_tensor_model_parallel_region(output, self.tp_group)",
            "pass",
        ),
    ),
    "tensor_parallel/hide": (
        (
            "handle = dist.all_reduce(grad_input, group=ctx.tp_group, async_op=True)",
            "handle = dist.all_reduce(grad_input, group=ctx.tp_group, async_op=True)\n"
            "        handle.wait()",
        ),
    ),
    "sequence_parallel/back": (("if ctx.partial else", "if not ctx.partial else"),),
    "schedules/one-f-one-b": (
        (
            "for i in range(num_warmup_microbatches):",
            "num_warmup_microbatches = total\n"
            "    num_microbatches_remaining = 0\n"
            "    for i in range(num_warmup_microbatches):",
        ),
    ),
    "pipeline/backward": (
        ("self.output_tensors.pop(forward)", "self.output_tensors[forward]"),
    ),
    "collectives/ring": (("accumulate(mine, received, op)", "mine.copy_(received)"),),
    "recover/validate": (("self.rerun_requested = True", "pass"),),
    "recover/digests": (("if len(set(digests)) > 1:", "if len(set(digests)) > 2:"),),
    "offload/update": (("self._arrive(param)", "pass"),),
    "offload/gather": (("padded.view(column.shape).copy_(column)", "padded.zero_()"),),
    "recompute/again": (("ctx.streams.replay(ctx.rng_states), ", ""),),
    "checkpoint/reads": (("for box in stored[name]", "for box in stored[name][:1]"),),
    "inference/receive": (("context.sequence_len_offset = s", "pass"),),
    "fsdp_state/norm": (("norm_type, dtype", "1.0, dtype"),),
    "inference/cache": (("start = self.sequence_len_offset", "start = 0"),),
    "zero_bubble/input": (
        ("group.grads[node] = grads", "pass"),
        ("for node in group.intermediates", "for node in [*group.intermediates][:1]"),
        (
            "grad = backward_input(output, grad_output, x)",
            "output.backward(grad_output, retain_graph=True)\n        grad = x.grad",
        ),
        ("output.detach_()", "pass"),
    ),
    "zero_bubble/weights": (
        ("kept in group.grads.items()", "kept in []"),
        (", inputs=group.params", ""),
        ("in enumerate(grads)", "in enumerate(grads[:1])"),
        (
            "edges, grads = zip(*arrived, strict=True)",
            "edges, grads = zip(*arrived, strict=True)\n"
            "        for param in group.params:\n"
            "            param.grad = None",
        ),
    ),
    "zero_bubble/order": (
        ("late = 2 * (p - rank) - 1, 2 * rank", "late = 2 * (p - rank) - 1, 0"),
        ("late = 2 * (p - rank) - 1, 2 * rank", "late = p - rank, 2 * rank"),
        ("if i >= late:", "if i > late:"),
    ),
    "compression/feedback": (
        ("bucket.buffer += self.error", "pass"),
        ("bucket.buffer.index_fill(0, indices, 0.0)", "bucket.buffer.clone()"),
        (".abs().topk(k)", ".topk(k)"),
        ("alpha=1 / group.size()", "alpha=1.0"),
    ),
    "compression/thin": (
        (
            "[q.div_(group.size()) for q in sum_together(qs, group)]",
            "sum_together(qs, group)",
        ),
        ("[q.div_(group.size()) for q in sum_together(qs, group)]", "qs"),
        (
            "self.qs = self.qs or self.draw_qs(matrices)",
            "self.qs = self.draw_qs(matrices)",
        ),
        ("for p in ps:\n            orthogonalize(p)", "pass"),
    ),
    "context_parallel/merge": (
        ("mine * output + theirs * other", "output + other"),
        ("mine * output + theirs * other", "(output + other) / 2"),
        (
            "torch.logaddexp(logsumexp, other_logsumexp)",
            "(logsumexp.exp() + other_logsumexp.exp()).log()",
        ),
        (
            "torch.logaddexp(logsumexp, other_logsumexp)",
            "torch.maximum(logsumexp, other_logsumexp)",
        ),
    ),
    "context_parallel/pairs": (
        ("if k <= q", "if k < q"),
        ("if k <= q", "if j <= i"),
        ("(i, j, q == k)", "(i, j, False)"),
        ("(i, j, q == k)", "(i, j, i == j)"),
    ),
    "experts/counts": (
        ("counts.view(p, num_local).sum(1)", "counts.view(num_local, p).sum(0)"),
        ("here[self.etp_group.rank()].sum(1).tolist()", "list(self.input_splits)"),
        ("view(p, -1, len(counts)).transpose(0, 1)", "view(-1, p, len(counts))"),
        (
            "return here.sum((0, 1)).tolist()",
            "return here[:, self.ep_group.rank()].sum(0).tolist()",
        ),
    ),
    "experts/capacity": (
        (
            "weights.topk(capacity, dim=0, sorted=False).indices",
            "chosen.int().topk(capacity, dim=0).indices",
        ),
        ("num_tokens * k", "num_tokens"),
        (
            "return weights * chosen, chosen",
            "weights = weights * chosen\n"
            "    return weights / (weights.sum(1, keepdim=True) + 1e-20), chosen",
        ),
        ("chosen = chosen & within", "chosen = within"),
    ),
}
"""By section: something in the mini's own lines, and what takes its place."""

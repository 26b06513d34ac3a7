"""The faults there are, mini by mini."""

from __future__ import annotations

from mini_impls.faults.fault import Fault, Guard, PredictedSymptom
from readerkit.anchors import Anchor
from readerkit.model.git_names import parse_path

# --- upstream lines that several faults point at ---

PARAM_AND_GRAD_BUFFER = parse_path("megatron/core/distributed/param_and_grad_buffer.py")
MAPPINGS = parse_path("megatron/core/tensor_parallel/mappings.py")
P2P = parse_path("megatron/core/pipeline_parallel/p2p_communication.py")
TORCH_ZERO = parse_path("torch/distributed/optim/zero_redundancy_optimizer.py")
TORCH_FSDP_PARAM = parse_path("torch/distributed/fsdp/_fully_shard/_fsdp_param.py")

READY_COUNTS = Guard(
    "megatron",
    Anchor(
        PARAM_AND_GRAD_BUFFER,
        "_ParamAndGradBucketGroup.register_grad_ready",
        code="if self.is_last_microbatch: ...",
    ),
    note="ddp-ready-counts",
)
EVEN_ODD = Guard(
    "megatron",
    Anchor(P2P, "_p2p_ops", code="if group.rank() % 2 == 0: ..."),
    note="pp-p2p-even-odd",
)

# --- data parallelism ---

DDP = parse_path("mini_impls/ddp.py")
HANGS = PredictedSymptom("hang", "It hangs: some rank waits for what never comes.")
DRIFTS = PredictedSymptom(
    "drift", "No error, the loss falls; but the ranks' weights become different."
)
RAISES = PredictedSymptom("error", "A rank raises an error in the first step.")
SAME = PredictedSymptom("nothing", "Nothing that can be measured changes.")
NO_DESCENT = PredictedSymptom("no descent", "The loss does not fall any more.")

DDP_FAULTS = (
    Fault(
        mini="ddp",
        name="no-sync",
        title="the hook leaves in the one microbatch that must be sent",
        at=Anchor(
            DDP,
            "DistributedDataParallel._make_backward_post_hook.hook",
            code="if not self.is_last_microbatch: ...",
        ),
        wrong="""
            if self.is_last_microbatch:
                return
        """,
        work="ddp",
        choices=(HANGS, NO_DESCENT, DRIFTS, SAME),
        why="Every rank trains on its own rows alone, and does so well: the loss falls "
        "on each. Nothing compares the copies, so nothing complains; only equal "
        "gradients before equal optimizer steps keep them one model.",
        guards=(READY_COUNTS,),
    ),
    Fault(
        mini="ddp",
        name="sum-for-mean",
        title="the gradients are added up and never divided",
        at=Anchor(
            DDP,
            "ParamAndGradBucket.start_grad_sync",
            code="self.grad_data *= self.gradient_scaling_factor",
        ),
        wrong="# the factor is left out",
        work="ddp",
        choices=(
            PredictedSymptom(
                "factor", "Gradients are too large by the number of ranks."
            ),
            DRIFTS,
            RAISES,
            NO_DESCENT,
        ),
        why="A sum over W ranks is W times their mean. AdamW divides a gradient by its "
        "own size, so its losses hardly show it; plain SGD takes steps W times as "
        "long, and clipping and weight decay no longer mean what they say.",
        guards=(
            Guard(
                "megatron",
                Anchor(
                    PARAM_AND_GRAD_BUFFER,
                    "_ParamAndGradBucketGroup.start_grad_sync",
                    code="if bucket.gradient_scaling_factor != 1.0: ...",
                ),
                note="ddp-prescale-or-average",
            ),
        ),
    ),
    Fault(
        mini="ddp",
        name="no-overlap",
        title="no bucket leaves before backward is over",
        at=Anchor(
            DDP,
            "DistributedDataParallel._make_backward_post_hook.hook",
            code="self.start_grad_sync()",
        ),
        wrong="# what is full is sent at the end, by finish_grad_sync",
        work="ddp",
        choices=(
            HANGS,
            PredictedSymptom(
                "late", "All is right, but no all-reduce hides behind backward."
            ),
            DRIFTS,
            PredictedSymptom("memory", "More bytes of gradients are held."),
        ),
        why="The end of backward sends what is left, here all of it: the same buckets, "
        "the same sums. Only the order tells: each all-reduce was meant to start "
        "while earlier layers still compute.",
        guards=(READY_COUNTS,),
    ),
    Fault(
        mini="ddp",
        name="blocking-wait",
        title="each bucket is waited for as soon as it is sent",
        at=Anchor(
            DDP,
            "ParamAndGradBucket.start_grad_sync",
            code="self.grad_reduce_handle = dist.all_reduce(...)",
        ),
        wrong="""
            self.grad_reduce_handle = dist.all_reduce(
                self.grad_data, group=group, async_op=True
            )
            self.grad_reduce_handle.wait()
        """,
        work="ddp",
        choices=(
            SAME,
            HANGS,
            PredictedSymptom(
                "late", "All is right, but backward stands still at each bucket."
            ),
            PredictedSymptom("memory", "More bytes of gradients are held."),
        ),
        why="The calls are issued in the same order, at the same gradients, and as "
        "asynchronous as before: who looks at their start sees overlap. Where they "
        "are waited for decides, and that is now before the next layer.",
        guards=(
            Guard(
                "megatron",
                Anchor(
                    PARAM_AND_GRAD_BUFFER,
                    "_ParamAndGradBucketGroup.finish_grad_sync",
                    code="self.grad_reduce_handle.wait()",
                ),
            ),
        ),
    ),
    Fault(
        mini="ddp",
        name="unflushed-bucket",
        title="a bucket counts once it is full, and the last one never is",
        at=Anchor(
            DDP,
            "assign_buckets",
            code="return [*buckets, *filling.values()]",
        ),
        wrong="return buckets",
        work="ddp",
        choices=(RAISES, HANGS, SAME, DRIFTS),
        why="The parameters left over belong to no bucket, get no hook, and keep the "
        "gradient of their own rank. They are those of the first layers, and the "
        "ranks drift apart in them alone at first.",
        guards=(
            Guard(
                "megatron",
                Anchor(
                    PARAM_AND_GRAD_BUFFER,
                    "_ParamAndGradBuffer.__init__",
                    code="if len(bucket_params) > 0: ...",
                    nth=2,
                ),
                note="ddp-bucket-size",
            ),
        ),
    ),
    Fault(
        mini="ddp",
        name="skipped-collective",
        title="only a rank that misses a gradient asks who else does",
        at=Anchor(
            DDP,
            "DistributedDataParallel.finish_grad_sync",
            code="if self.find_unused_parameters: ...",
        ),
        wrong="""
            if unused:
                used_anywhere = self._all_reduce_used_map(unused)
        """,
        work="ddp, a layer unused on rank 0",
        choices=(
            SAME,
            PredictedSymptom(
                "hang", "Rank 0 waits for a call that the others never make."
            ),
            DRIFTS,
            PredictedSymptom(
                "factor", "Gradients are too large by the number of ranks."
            ),
        ),
        why="A collective is a call that all ranks of the group make. To leave it out "
        "where it seems not needed is a decision that each rank would take by what "
        "it sees alone: rank 0 asks, and nobody is there to answer.",
        guards=(
            Guard(
                "pytorch",
                Anchor(
                    parse_path("torch/nn/parallel/distributed.py"),
                    "DistributedDataParallel._post_forward",
                    code="if self.find_unused_parameters and ...: ...",
                    nth=1,
                ),
            ),
        ),
    ),
)

# --- ZeRO and FSDP ---

ZERO = parse_path("mini_impls/zero.py")
FSDP = parse_path("mini_impls/fsdp.py")
FSDP_PARAM = parse_path("mini_impls/fsdp_param.py")
FLAT = parse_path("mini_impls/fsdp_flat.py")
FLAT_PARAM = parse_path("mini_impls/fsdp_flat_param.py")
STATE = PredictedSymptom(
    "memory", "Losses stay right, but each rank holds the whole of it."
)

SHARDED_FAULTS = (
    Fault(
        mini="zero",
        name="unsharded-state",
        title="every rank owns every parameter",
        at=Anchor(ZERO, "ZeroStage1._owned", code="return [...]"),
        wrong="return list(params)",
        work="zero",
        choices=(DRIFTS, STATE, RAISES, NO_DESCENT),
        why="All ranks make the same update, then the owner's is broadcast over equal "
        "values: correct, and no byte of optimizer state is saved. Losses cannot "
        "tell; only counting what is held can.",
        guards=(
            Guard(
                "pytorch",
                Anchor(
                    TORCH_ZERO,
                    "ZeroRedundancyOptimizer._init_local_optimizer",
                    code="param_groups = self._partition_parameters()[self.rank]",
                ),
                note="zero-whole-parameters",
            ),
        ),
    ),
    Fault(
        mini="zero",
        name="stale-shard",
        title="what the owners updated is not shared after the step",
        at=Anchor(ZERO, "ZeroStage1.step", code="self._sync_params()"),
        wrong="# each rank keeps what it has",
        work="zero",
        choices=(HANGS, SAME, STATE, DRIFTS),
        why="A rank updates only what it owns and has the old values of the rest: each "
        "runs another mixture of new and old.",
        guards=(
            Guard(
                "pytorch",
                Anchor(
                    TORCH_ZERO,
                    "ZeroRedundancyOptimizer.step",
                    code="self._sync_params()",
                ),
                note="zero-step-then-gather",
            ),
        ),
    ),
    Fault(
        mini="fsdp",
        name="sum-for-mean",
        title="the reduce-scatter adds and does not average",
        at=Anchor(
            FSDP,
            "FSDPState.start_reduce_scatter",
            code="op = dist.ReduceOp.AVG",
        ),
        wrong="op = dist.ReduceOp.SUM",
        work="fsdp",
        choices=(
            NO_DESCENT,
            DRIFTS,
            PredictedSymptom(
                "factor", "Gradients are too large by the number of ranks."
            ),
            SAME,
        ),
        why="Each rank's loss is a mean over its own rows, so the gradient of the mean "
        "over all is the mean of the gradients. AdamW hides the factor.",
        guards=(
            Guard(
                "pytorch",
                Anchor(
                    parse_path(
                        "torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py"
                    ),
                    "_get_gradient_divide_factors",
                    code="return None, None, ReduceOp.AVG, ReduceOp.AVG",
                ),
                note="fsdp2-divide-factors",
            ),
        ),
    ),
    Fault(
        mini="fsdp",
        name="unsharded-state",
        title="resharding hands back the shard and keeps the whole",
        at=Anchor(
            FSDP_PARAM,
            "FSDPParam.to_sharded",
            code="self.all_gather_output.untyped_storage().resize_(0)",
        ),
        wrong="# its memory stays",
        work="fsdp",
        choices=(
            PredictedSymptom(
                "memory", "Losses stay right, but gathered parameters stay alive."
            ),
            NO_DESCENT,
            DRIFTS,
            RAISES,
        ),
        why="The model sees shards, its parameters count as shards, and the whole ones "
        "are still there, one beside each. What is measured must be memory, not the "
        "sizes of what the module lists.",
        guards=(
            Guard(
                "pytorch",
                Anchor(TORCH_FSDP_PARAM, "FSDPParam.free_unsharded_param"),
                note="fsdp2-reshard-after-forward",
            ),
        ),
    ),
    Fault(
        mini="fsdp",
        name="wrong-dtype",
        title="the master shard is kept in the dtype of the computation",
        at=Anchor(
            FSDP_PARAM,
            "FSDPParam.__init__",
            code="padded = param.new_zeros(...)",
        ),
        wrong="""
            padded = param.new_zeros(
                self.padded_sharded_size,
                dtype=self.compute_dtype,
                requires_grad=False,
            )
        """,
        work="fsdp in bf16",
        choices=(
            RAISES,
            PredictedSymptom(
                "unmoved", "Most weights never move: updates round to nothing."
            ),
            PredictedSymptom(
                "factor", "Gradients are too large by the number of ranks."
            ),
            HANGS,
        ),
        why="bf16 keeps 8 significant bits: next to a weight, a change below a 500th "
        "of it is lost, every step anew. The bytes fall by half, which looks like "
        "success. An fp32 master adds the small steps up.",
        guards=(
            Guard(
                "pytorch",
                Anchor(
                    TORCH_FSDP_PARAM,
                    "FSDPParam._init_sharded_param",
                    code="padded_sharded_param = param_data.new_zeros(...)",
                ),
                note="fsdp2-dim0-shards",
            ),
            Guard(
                "pytorch",
                Anchor(
                    TORCH_FSDP_PARAM,
                    "FSDPParam.all_gather_inputs",
                    code="return [_to_dtype_if_needed(...)]",
                ),
                note="fsdp2-three-dtypes",
            ),
        ),
    ),
    Fault(
        mini="fsdp",
        name="stale-shard",
        title="the optimizer's shard is a copy of the one that is sent",
        at=Anchor(
            FSDP_PARAM,
            "FSDPParam.__init__",
            code="self.sharded_param = nn.Parameter(...)",
        ),
        wrong="""
            mine = padded[: len(mine)].clone()
            self.sharded_param = nn.Parameter(mine, param.requires_grad)
        """,
        work="fsdp",
        choices=(DRIFTS, SAME, RAISES, NO_DESCENT),
        why="The optimizer moves its copy; every all-gather sends what was there "
        "before the first step. All ranks agree with each other, on the initial model.",
        guards=(
            Guard(
                "pytorch",
                Anchor(
                    TORCH_FSDP_PARAM,
                    "FSDPParam._init_sharded_param",
                    start="self._sharded_param_data = ...",
                    stop="sharded_param = padded_sharded_param.narrow(...)",
                ),
                note="fsdp2-dim0-shards",
            ),
        ),
    ),
    Fault(
        mini="fsdp_flat",
        name="sum-for-mean",
        title="the first half of the division is left out",
        at=Anchor(
            FLAT,
            "FlatState.start_reduce_grad",
            code="padded /= self.gradient_predivide_factor",
        ),
        wrong="# divided after the sum, is it not?",
        work="fsdp_flat",
        choices=(
            PredictedSymptom("factor", "Gradients are too large, by a whole factor."),
            SAME,
            DRIFTS,
            NO_DESCENT,
        ),
        why="The divisor is cut in two, one part before the sum and one after it, so "
        "that small dtypes neither overflow nor vanish. With either part missing the "
        "other alone is no mean.",
        guards=(
            Guard(
                "pytorch",
                Anchor(
                    parse_path("torch/distributed/fsdp/_runtime_utils.py"),
                    "_reduce_grad",
                    code="_div_if_needed(padded_unsharded_grad, ...)",
                ),
                note="fsdp1-post-backward",
            ),
        ),
    ),
    Fault(
        mini="fsdp_flat",
        name="stale-shard",
        title="after the step the old shard is put back in place",
        at=Anchor(
            FLAT_PARAM,
            "FlatParamHandle.reshard",
            code="self.flat_param.data = self._local_shard",
        ),
        wrong="self.flat_param.data = self._local_shard.clone()",
        work="fsdp_flat",
        choices=(SAME, NO_DESCENT, STATE, RAISES),
        why="The optimizer writes into the clone, and the next all-gather sends the "
        "shard that nobody writes to. The parameter and what is sent must be one "
        "memory.",
        guards=(
            Guard(
                "pytorch",
                Anchor(
                    parse_path("torch/distributed/fsdp/_flat_param.py"),
                    "FlatParamHandle._use_sharded_flat_param",
                    code="flat_param.data = flat_param._local_shard",
                ),
                note="fsdp1-gather-in-place",
            ),
        ),
    ),
)

# --- tensor and sequence parallelism ---

TP = parse_path("mini_impls/tensor_parallel.py")
SP_MODEL = parse_path("mini_impls/sequence_parallel_model.py")

TENSOR_FAULTS = (
    Fault(
        mini="tensor_parallel",
        name="f-missing",
        title="the gradient of a sliced layer's input is not added up",
        at=Anchor(
            TP,
            "_CopyToModelParallelRegion.backward",
            code="return ...",
        ),
        wrong="return grad_output, None",
        work="tensor_parallel",
        choices=(
            PredictedSymptom(
                "first loss", "The very first loss is already another one."
            ),
            RAISES,
            DRIFTS,
            HANGS,
        ),
        why="Forward, f does nothing, so the first loss is exact. Backward, each rank "
        "has the gradient through its own slice only: norms and biases, which every "
        "rank keeps whole, get other gradients on each and drift apart.",
        guards=(
            Guard(
                "megatron",
                Anchor(MAPPINGS, "_CopyToModelParallelRegion.backward"),
                note="tp-f-operator-bypassed",
            ),
        ),
    ),
    Fault(
        mini="tensor_parallel",
        name="g-missing",
        title="the parts of a row-parallel product are not added up",
        at=Anchor(
            TP,
            "_ReduceFromModelParallelRegion.forward",
            code="return ...",
        ),
        wrong="return input_.clone()",
        work="tensor_parallel",
        choices=(
            PredictedSymptom(
                "first loss", "The very first loss is already another one."
            ),
            SAME,
            RAISES,
            HANGS,
        ),
        why="Each rank goes on with its part of the sum as if it were all of it. That "
        "is another function, on every rank another one, from the first step on.",
        guards=(
            Guard(
                "megatron",
                Anchor(MAPPINGS, "_ReduceFromModelParallelRegion.forward"),
                note="tp-g-operator",
            ),
        ),
    ),
    Fault(
        mini="tensor_parallel",
        name="no-overlap",
        title="the input gradient is sent after the weight gradient is made",
        at=Anchor(
            TP,
            "LinearWithGradAccumulationAndAsyncCommunication.backward",
            start="handle = dist.all_reduce(...)",
            stop="grad_bias = ...",
        ),
        wrong="""
            grad_output = grad_output.flatten(0, -2)  # (BT, O/W)
            grad_weight = grad_output.t().matmul(input_.flatten(0, -2))  # (O/W, I)
            grad_bias = grad_output.sum(dim=0) if ctx.use_bias else None
            handle = dist.all_reduce(grad_input, group=ctx.tp_group, async_op=True)
        """,
        work="tensor_parallel, one layer",
        choices=(
            HANGS,
            DRIFTS,
            PredictedSymptom(
                "late", "All is right, but no product hides the sum any more."
            ),
            SAME,
        ),
        why="The call is asynchronous all the same; it is only made when nothing is "
        "left to do meanwhile. The order of four lines is the whole optimisation.",
        guards=(
            Guard(
                "megatron",
                Anchor(
                    parse_path("megatron/core/tensor_parallel/layers.py"),
                    "LinearWithGradAccumulationAndAsyncCommunication.backward",
                    code="if ctx.allreduce_dgrad: ...",
                    nth=1,
                ),
                note="tp-dgrad-overlap",
            ),
        ),
    ),
    Fault(
        mini="sequence_parallel",
        name="wrong-random-stream",
        title="a shard of tokens is dropped with the stream that all ranks share",
        at=Anchor(SP_MODEL, "SequenceParallelDropout.forward", code="with ...: ..."),
        wrong="return super().forward(input)",
        work="sequence_parallel",
        choices=(
            RAISES,
            DRIFTS,
            PredictedSymptom(
                "same masks", "All ranks drop the same places of their shards."
            ),
            SAME,
        ),
        why="The streams of all ranks stand at one place, and each rank draws for "
        "other tokens: token 0 and token T/W lose the same channels. The loss falls; "
        "the noise is correlated, and depends on the number of ranks.",
        guards=(
            Guard(
                "megatron",
                Anchor(
                    parse_path("megatron/core/tensor_parallel/random.py"),
                    "model_parallel_cuda_manual_seed",
                    code="tensor_model_parallel_seed = offset + tp_rank",
                ),
                note="tp-rng-fork",
            ),
        ),
    ),
    Fault(
        mini="sequence_parallel",
        name="no-sync",
        title="gradients of the norms stay those of a rank's own tokens",
        at=Anchor(
            SP_MODEL, "train", code="allreduce_non_tensor_model_parallel_grads(...)"
        ),
        wrong="# the norms are whole on every rank: nothing to do?",
        work="sequence_parallel",
        choices=(
            SAME,
            PredictedSymptom(
                "first loss", "The very first loss is already another one."
            ),
            HANGS,
            DRIFTS,
        ),
        why="The weights of a norm are replicated, but they saw a shard of the tokens. "
        "Their gradient is a part of a sum, as if they were cut.",
        guards=(
            Guard(
                "megatron",
                Anchor(
                    parse_path("megatron/core/distributed/finalize_model_grads.py"),
                    "finalize_model_grads",
                    code="_allreduce_non_tensor_model_parallel_grads(...)",
                ),
                note="sp-partial-norm-grads",
            ),
        ),
    ),
)

# --- pipelines and messages ---

PIPELINE = parse_path("mini_impls/pipeline.py")
SCHEDULES = parse_path("mini_impls/schedules.py")
COLLECTIVES = parse_path("mini_impls/collectives.py")
BOTH_SEND = PredictedSymptom(
    "hang", "It hangs: both sides of a message send, neither receives."
)

PIPELINE_FAULTS = (
    Fault(
        mini="pipeline",
        name="send-order",
        title="sends are waited for before the receives are posted",
        at=Anchor(PIPELINE, "PipelineExecutor.communicate", code="for req in ...: ..."),
        wrong="""
            for op in sorted(ops, key=lambda op: op.op is irecv):  # sends come first
                for req in dist.batch_isend_irecv([op]):
                    req.wait()
        """,
        work="pipeline",
        choices=(
            SAME,
            PredictedSymptom(
                "drift", "Messages are mixed up: activations of other microbatches."
            ),
            BOTH_SEND,
            PredictedSymptom("in flight", "Stages hold more activations."),
        ),
        why="In the steady state one rank hands an activation down while the next "
        "hands a gradient up. A send may wait until it is received; with both in their "
        "send, no receive is ever posted.",
        guards=(
            Guard(
                "megatron",
                Anchor(
                    P2P,
                    "_batched_p2p_ops",
                    code="reqs = torch.distributed.batch_isend_irecv(ops)",
                ),
                note="pp-batched-p2p-order",
            ),
            EVEN_ODD,
        ),
    ),
    Fault(
        mini="pipeline",
        name="schedule-leak",
        title="all microbatches count as warm-up",
        at=Anchor(
            SCHEDULES,
            "get_pp_rank_microbatches",
            code="num_warmup_microbatches = pipeline_parallel_size - ...",
        ),
        wrong="num_warmup_microbatches = num_microbatches",
        work="pipeline",
        choices=(
            HANGS,
            PredictedSymptom(
                "in flight", "Each stage holds the activations of all microbatches."
            ),
            RAISES,
            SAME,
        ),
        why="The gradients are the same, and so is the bubble: it was GPipe's all "
        "along. What 1F1B is for is memory: a stage needs as many microbatches in "
        "flight as there are stages behind it, not all of them.",
        guards=(
            Guard(
                "megatron",
                Anchor(
                    parse_path("megatron/core/pipeline_parallel/schedules.py"),
                    "get_pp_rank_microbatches",
                    code="num_warmup_microbatches = pipeline_parallel_size - ...",
                ),
                note="pp-warmup-count",
            ),
        ),
    ),
    Fault(
        mini="schedules",
        name="eager-weights",
        title="ZB-H1 makes each weight's gradient at once, and puts none off",
        at=Anchor(
            SCHEDULES,
            "zb_h1",
            start="if i >= rank: ...",
            stop="for i in range(max(0, ...), num_microbatches): ...",
        ),
        wrong="""
            yield Step("W", i, stage=rank)  # why put it off?
        """,
        work="schedules, zb-h1",
        choices=(
            HANGS,
            PredictedSymptom("in flight", "Some rank holds more microbatches."),
            PredictedSymptom("bubble", "The same work, and ranks idle for longer."),
            SAME,
        ),
        why="A weight's gradient is the one piece of work that nobody waits for. Done "
        "at once it is 1F1B again, its backward in two parts; put off, it fills the "
        "gaps at the end, in which a rank would wait for gradients from behind.",
        guards=(
            Guard(
                "pytorch",
                Anchor(
                    parse_path("torch/distributed/pipelining/schedules.py"),
                    "_get_1f1b_rank_ops",
                    code="if enable_zero_bubble and op - warmup_ops >= ...: ...",
                    nth=1,
                ),
            ),
        ),
    ),
    Fault(
        mini="collectives",
        name="send-order",
        title="every rank sends to its neighbour, then receives",
        at=Anchor(COLLECTIVES, "exchange", code="return ..."),
        wrong="""
            for op in ops:
                wait(dist.batch_isend_irecv([op]))
            return []
        """,
        work="collectives",
        choices=(
            BOTH_SEND,
            SAME,
            PredictedSymptom("error", "The sum is wrong, and an assertion says so."),
            DRIFTS,
        ),
        why="Round a ring, everyone sends and nobody receives: each waits for its "
        "neighbour, which waits for the next, and so back to the first.",
        guards=(EVEN_ODD,),
    ),
)

# --- after training ---

AFTER_FAULTS = (
    Fault(
        mini="fsdp_state",
        name="local-norm",
        title="each rank clips by the norm of its own shards",
        at=Anchor(
            parse_path("mini_impls/fsdp_state.py"),
            "clip_grad_norm_",
            code="dist.all_reduce(total_norm, group=group)",
        ),
        wrong="# the gradients are reduced already: is their norm not known?",
        work="fsdp_state, clipped",
        choices=(
            PredictedSymptom(
                "norm", "Ranks scale by factors of their own; training goes on."
            ),
            HANGS,
            NO_DESCENT,
            RAISES,
        ),
        why="Reduced gradients are the same for everyone only where everyone has them. "
        "A rank has the rows of its shards, and their norm is a part of the whole: it "
        "clips too little, and each by another factor, so the direction turns as well.",
        guards=(
            Guard(
                "pytorch",
                Anchor(
                    parse_path("torch/distributed/fsdp/fully_sharded_data_parallel.py"),
                    "FullyShardedDataParallel.clip_grad_norm_",
                    code="dist.all_reduce(total_norm, group=self.process_group)",
                ),
            ),
        ),
    ),
    Fault(
        mini="inference",
        name="overwritten-cache",
        title="every token's keys and values go to the front of the cache",
        at=Anchor(
            parse_path("mini_impls/inference.py"),
            "StaticInferenceContext.adjust_key_value",
            code="start = self.sequence_len_offset",
        ),
        wrong="start = 0",
        work="inference",
        choices=(
            RAISES,
            SAME,
            PredictedSymptom("memory", "More bytes of keys and values are held."),
            PredictedSymptom(
                "other text", "It runs as before, and writes another text."
            ),
        ),
        why="The first new token comes from the prompt and is right. From the second "
        "on a query sees one key, its own, and the model answers as if there had been "
        "no text. Shapes fit everywhere, so nothing complains.",
        guards=(
            Guard(
                "megatron",
                Anchor(
                    parse_path("megatron/core/transformer/attention.py"),
                    "Attention._adjust_key_value_for_inference",
                    code="sequence_start = inference_context.sequence_len_offset",
                ),
            ),
        ),
    ),
)

FAULTS = DDP_FAULTS + SHARDED_FAULTS + TENSOR_FAULTS + PIPELINE_FAULTS + AFTER_FAULTS

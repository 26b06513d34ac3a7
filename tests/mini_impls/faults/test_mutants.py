"""Small wrongs that teach nothing and that the suite must see all the same.

Each once passed it. Unlike a fault of `break` none has a story: an anchor, the lines in
its place, and the one test that fails with them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import test_collectives
import test_compression
import test_ddp
import test_fsdp
import test_fsdp_flat
import test_fsdp_state
import test_inference
import test_memory
import test_overlap
import test_random_models
import test_recover_checks
import test_subgroups
import test_tensor_parallel
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from mutant_pool import MutantPool
from mutants import in_every_rank

from mini_impls.faults.fault import Fault, Mutant
from readerkit.anchors import Anchor
from readerkit.model.git_names import parse_path


@dataclass(frozen=True)
class Wrong:
    """One change to a mini, and the test that sees it."""

    mini: str
    symbol: str
    code: str
    lines: str
    check: Callable[..., Any]
    world_size: int = 2

    def make(self) -> Mutant:
        at = Anchor(
            parse_path(f"mini_impls/{self.mini}.py"), self.symbol, code=self.code
        )
        return Mutant.make(Fault(self.mini, "", "", at, self.lines, "", (), "", ()))


def overlap_of(mini):
    if mini in test_overlap.COLUMN:
        check = test_overlap.test_each_call_of_a_column_layer_hides_behind_a_product
    else:
        check = test_overlap.test_backward_goes_on_while_calls_are_under_way
    return lambda pool: check(pool, mini)


def memory_of(mini):
    return lambda pool: test_memory.test_a_step_leaves_as_much_alive_as_the_step_before(
        pool, mini
    )


def ddp_in_parts(pool):
    parts, world_of_two = [[0, 2], [1, 3]], test_subgroups.RankPool(2)
    try:
        work = test_subgroups.WORKS["ddp"]
        test_subgroups.check({4: pool, 2: world_of_two}, parts, *work)
    finally:
        world_of_two.close()


def random_models(check, *args):
    """Return a drawn test, which ends with the first model that shows the wrong."""

    def drawn(pool):
        @settings(max_examples=12, phases=[Phase.generate], report_multiple_bugs=False)
        @given(data=st.data())
        def draw(data):
            check(pool, *args, data)

        draw()

    return drawn


def random_models_on(mini):
    return random_models(test_random_models.check, mini)


def resumed_on_two(pool, data):
    test_random_models.check_resumed([pool, pool], data)


GROUPS_OF_PARAMETERS = (
    "test_a_group_goes_on_where_the_groups_before_it_have_left_most_room"
)
WRONGS = {
    "a pipelined ring that never divides": Wrong(
        "collectives",
        "pipelined_ring_reduce_scatter",
        "if op == ReduceOp.AVG: ...",
        "",
        test_collectives.test_every_operation_reduces,
    ),
    "a mean over the ranks that are left after folding": Wrong(
        "collectives_log",
        "halving_doubling_all_reduce",
        "flat[bounds[rank] : bounds[rank + 1]] /= world_size",
        "flat[bounds[rank] : bounds[rank + 1]] /= power",
        test_collectives.test_a_world_that_is_no_power_of_two,
        world_size=4,
    ),
    "a cost that leaves out the wrong chunk": Wrong(
        "collectives_log",
        "cost",
        "return w - 1, numel - before",
        "return w - 1, numel - own",
        lambda pool: test_collectives.test_both_halves_of_a_ring_cost_what_is_stated(
            pool, 1001
        ),
    ),
    "a ring on a copy": Wrong(
        "collectives",
        "ring_all_reduce",
        "chunks = ...",
        "chunks = tensor.reshape(-1).tensor_split(group.size())",
        test_collectives.test_what_cannot_be_reduced_in_place_is_not_reduced_on_a_copy,
    ),
    "halving and doubling on a copy": Wrong(
        "collectives_log",
        "halving_doubling_all_reduce",
        "flat = tensor.view(-1)",
        "flat = tensor.reshape(-1)",
        test_collectives.test_what_cannot_be_reduced_in_place_is_not_reduced_on_a_copy,
    ),
    "no_sync for ever after an error": Wrong(
        "ddp",
        "DistributedDataParallel.no_sync",
        "try: ...",
        """
            yield
            self.is_last_microbatch = True
        """,
        test_ddp.test_an_error_within_no_sync_ends_it,
    ),
    "a gradient of earlier microbatches that counts as none": Wrong(
        "ddp",
        "DistributedDataParallel._find_unused",
        "unused = ...",
        "unused = {p: bucket.main_grad[p] for bucket, p in late}",
        lambda pool: test_ddp.test_what_was_used_within_no_sync_only_is_sent(
            pool, True
        ),
    ),
    "a broadcast to everyone from rank 0 of the world": Wrong(
        "ddp",
        "broadcast_params",
        "dist.broadcast(...)",
        "dist.broadcast(tensor.detach(), src=0)",
        ddp_in_parts,
        world_size=4,
    ),
    "buckets that are kept": Wrong(
        "ddp",
        "ParamAndGradBucket.start_grad_sync",
        "self.grad_data *= self.gradient_scaling_factor",
        """
            self.grad_data *= self.gradient_scaling_factor
            self.__dict__.setdefault("kept", []).append(self.grad_data.clone())
        """,
        memory_of("ddp"),
    ),
    "a bucket that is waited for at once": Wrong(
        "ddp",
        "ParamAndGradBucket.start_grad_sync",
        "self.grad_reduce_handle = ...",
        """
            self.grad_reduce_handle = dist.all_reduce(
                self.grad_data, group=group, async_op=True
            )
            self.grad_reduce_handle.wait()
        """,
        overlap_of("ddp"),
    ),
    "owners of equally many parameters": Wrong(
        "zero",
        "ZeroStage1._partition_parameters",
        "sizes[rank] += param.numel()",
        "sizes[rank] += 1",
        in_every_rank("test_zero", "test_owners_have_equally_much_not_equally_many"),
    ),
    "owners that each group of parameters deals anew": Wrong(
        "zero",
        "ZeroStage1._partition_parameters",
        "for param_group in self.param_groups: ...",
        """
            for param_group in self.param_groups:
                sizes = [0] * self.world_size
                params = param_group["params"]
                for param in sorted(params, key=Tensor.numel, reverse=True):
                    rank = sizes.index(min(sizes))
                    param_to_rank[param] = rank
                    sizes[rank] += param.numel()
        """,
        in_every_rank("test_zero", GROUPS_OF_PARAMETERS),
    ),
    "a reduction that is waited for before the next": Wrong(
        "zero",
        "ZeroStage2._reduce_gradient",
        "handle = dist.reduce(...)",
        """
            self._finish_reduction()
            handle = dist.reduce(grad, group_dst=owner, group=self.group, async_op=True)
        """,
        overlap_of("zero stage 2"),
    ),
    "the neighbour of a group's first run": Wrong(
        "fsdp",
        "PrefetchingParamGroup.pre_backward",
        "index = ...",
        """
            indices = self._post_forward_indices
            index = indices.pop(0) if indices else 0
        """,
        test_fsdp.test_a_group_that_runs_twice_has_each_time_the_one_before_it_gathered,
    ),
    "places in the order of a forward that is over": Wrong(
        "fsdp",
        "PrefetchingParamGroup.finish_backward",
        "self._post_forward_indices.clear()",
        "",
        test_fsdp.test_what_backward_did_not_reach_is_not_reached_by_the_next,
    ),
    "what was gathered in vain and stays": Wrong(
        "fsdp",
        "FSDPParamGroup.finish_backward",
        "self.wait_for_unshard()",
        "",
        test_memory.test_what_was_gathered_ahead_in_vain_is_gone_after_the_step,
    ),
    "a barrier before every forward": Wrong(
        "fsdp",
        "FSDPParamGroup.pre_forward",
        "self.unshard()",
        """
            dist.barrier(self.state.group)
            self.unshard()
        """,
        lambda pool: test_fsdp.test_one_step_sends_these_in_this_order(pool, True),
    ),
    "shards that are kept": Wrong(
        "fsdp",
        "FSDPParamGroup.unshard",
        "inputs = ...",
        """
            inputs = [fsdp_param.all_gather_input() for fsdp_param in self.fsdp_params]
            self.__dict__.setdefault("kept", []).append(torch.cat(inputs))
        """,
        memory_of("fsdp"),
    ),
    "a shard that keeps the whole flat parameter": Wrong(
        "fsdp_flat_param",
        "FlatParamHandle.__init__",
        "self._local_shard = ...",
        "self._local_shard = padded.view(world_size, -1)[rank]",
        test_fsdp_flat.test_memory_falls_while_the_step_runs,
    ),
    "clipping without a margin": Wrong(
        "fsdp_state",
        "clip_grad_norm_",
        "clip_coef = ...",
        "clip_coef = torch.clamp(max_norm / total_norm, max=1.0)",
        test_fsdp_state.test_a_norm_of_zero_under_a_bound_of_zero_is_no_nan,
    ),
    "slices that keep the whole weight": Wrong(
        "tensor_parallel",
        "shard",
        "return nn.Parameter(...)",
        "return nn.Parameter(mine, requires_grad=master.requires_grad)",
        lambda pool: test_tensor_parallel.test_slices_keep_nothing_of_the_whole_weight(
            pool, "default"
        ),
    ),
    "a sum that is waited for at once": Wrong(
        "tensor_parallel",
        "LinearWithGradAccumulationAndAsyncCommunication.backward",
        "handle = dist.all_reduce(...)",
        """
            handle = dist.all_reduce(grad_input, group=ctx.tp_group, async_op=True)
            handle.wait()
        """,
        overlap_of("tensor_parallel"),
    ),
    "a sum in 16 bits that is divided behind it": Wrong(
        "compression",
        "all_reduce_as.compress",
        "dist.all_reduce(sent, group=group)",
        """
            sent *= group.size()
            dist.all_reduce(sent, group=group)
            sent /= group.size()
        """,
        test_compression.test_a_mean_that_float16_holds_survives_a_sum_that_it_does_not,
    ),
    "a repair of a copy": Wrong(
        "recover_checks",
        "repair",
        "params[each.name].detach().copy_(whole)",
        "",
        test_recover_checks.test_a_parameter_is_mended_whatever_its_strides,
        world_size=4,
    ),
    "a model that generates as it trains": Wrong(
        "inference",
        "generate",
        "gpt.eval()",
        "",
        test_inference.test_a_model_that_was_being_trained_drops_nothing_out,
    ),
    "a frozen weight that each rank has drawn for itself": Wrong(
        "ddp",
        "broadcast_params",
        "dist.broadcast(...)",
        """
            if tensor.requires_grad:
                dist.broadcast(tensor.detach(), group_src=0, group=group)
        """,
        random_models_on("ddp"),
    ),
    "a mean of any number of ranks as of two": Wrong(
        "compression",
        "all_reduce",
        "bucket.buffer /= group.size()",
        "bucket.buffer /= 2",
        random_models_on("compression"),
        world_size=3,
    ),
    "half of what is kept back is dropped": Wrong(
        "compression",
        "TopK.__call__",
        "bucket.buffer += self.error",
        "bucket.buffer += self.error / 2",
        random_models(test_compression.check_random_models),
    ),
    "largest elements without error feedback": Wrong(
        "compression",
        "TopK.__call__",
        "bucket.buffer += self.error",
        "pass",
        test_compression.check_convergence,
    ),
    "thin matrices without error feedback": Wrong(
        "compression",
        "PowerSGD.__call__",
        "bucket.buffer += self.error",
        "pass",
        test_compression.check_convergence,
    ),
    "gradients of two ranks, on three": Wrong(
        "zero",
        "ZeroStage2._reduce_gradient",
        "grad /= self.world_size",
        "grad /= 2",
        random_models_on("zero"),
        world_size=3,
    ),
    "a last row that no rank has": Wrong(
        "fsdp_param",
        "FSDPParam.__init__",
        "padded[: len(mine)] = mine",
        "padded[: len(mine) - 1] = mine[:-1]",
        random_models_on("fsdp"),
    ),
    "a last element that no rank has": Wrong(
        "fsdp_flat_param",
        "FlatParamHandle.__init__",
        "padded[: len(flat)] = flat",
        "padded[: len(flat) - 1] = flat[:-1]",
        random_models_on("fsdp_flat"),
    ),
    "a sum of gradients on the host": Wrong(
        "offload_states",
        "OffloadedUnit.reduce_gradients",
        "op = dist.ReduceOp.AVG",
        "op = dist.ReduceOp.SUM",
        random_models_on("offload"),
    ),
    "momentum that is not loaded": Wrong(
        "fsdp_state",
        "load_checkpoint",
        "optimizer.state[shard.param] = state",
        "",
        random_models(resumed_on_two),
    ),
    "a bias of each part of a sum": Wrong(
        "tensor_parallel",
        "RowParallelLinear.forward",
        "return output if self.bias is None else output + self.bias",
        "return output + self.bias * self.tp_group.size()",
        random_models_on("tensor_parallel"),
        world_size=3,
    ),
    "biases that differ from rank to rank": Wrong(
        "sequence_parallel_model",
        "sequence_parallel",
        "partial += [attention.linear_proj.bias, linear_fc2.bias]",
        "partial += [attention.linear_proj.bias]",
        random_models_on("sequence_parallel"),
    ),
    "a loss that is divided twice": Wrong(
        "pipeline",
        "PipelineExecutor.forward_step",
        "losses.append(loss.detach())",
        "losses.append(loss.detach() / len(batches))",
        random_models_on("pipeline"),
    ),
    "sends that nobody waits for until the end": Wrong(
        "pipeline",
        "PipelineExecutor.communicate_overlapped",
        "self.wait_for_sends()",
        "",
        test_overlap.test_sends_of_one_exchange_are_waited_for_at_the_next,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONGS)
def test_the_suite_sees(name, tmp_path):
    wrong = WRONGS[name]
    pool = MutantPool(wrong.make().write(tmp_path), world_size=wrong.world_size)
    try:
        with pytest.raises(AssertionError) as caught:
            wrong.check(pool)
        assert "gave no answer" not in str(caught.value), "it was only slow"
    finally:
        pool.close()

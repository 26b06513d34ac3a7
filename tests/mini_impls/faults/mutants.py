"""The checks of the suite that notice a fault, one for each."""

import importlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import test_checkpoint
import test_collectives
import test_compression
import test_context_parallel
import test_ddp
import test_experts
import test_fsdp
import test_fsdp_flat
import test_fsdp_state
import test_inference
import test_inference_apart
import test_layout_gpt
import test_mixed_precision
import test_muon
import test_offload
import test_overlap
import test_pipeline
import test_recompute
import test_recover
import test_recover_checks
import test_sequence_parallel
import test_tensor_parallel
import test_zero
import test_zero_bubble
import torch
from ranks import RankPool

from mini_impls.launch import Rank


def in_every_rank(
    module: str, check: str, args: tuple[Any, ...] = ()
) -> Callable[[RankPool], None]:
    """Return a check that needs no ranks, to be done inside of them."""
    return lambda pool: pool.run(call, module, check, args)


def call(rank: Rank, module: str, check: str, args: tuple[Any, ...]) -> None:
    getattr(importlib.import_module(module), check)(*args)


def ddp_trained(pool, config, how):
    return pool.run(test_ddp.train, config, how)


def zero_trained(pool, config, stage):
    return pool.run(test_zero.train, config, stage, *test_zero.SGD)


def in_a_model(way: str) -> Callable[[RankPool], None]:
    """Return the training of a model under context parallelism."""
    return lambda pool: test_context_parallel.test_a_model_trains_as_in_one_process(
        pool, way, 2, False
    )


def in_a_folder(
    check: Callable[[RankPool, Path], None],
) -> Callable[[RankPool], None]:
    """Return a check that writes files, with a folder that goes with it."""

    def checked(pool: RankPool) -> None:
        with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
            check(pool, Path(folder))

    return checked


def in_a_cut(cut: str) -> Callable[[RankPool], None]:
    """Return a layout of two ranks beside one process."""
    check = test_layout_gpt.test_two_ranks_cut_any_way_train_as_one_process
    return lambda pool: check(pool, cut)


def in_attention(way: str) -> Callable[[RankPool], None]:
    """Return attention alone, forward and backward."""
    check = test_context_parallel.test_equal_to_one_place_forward_and_backward
    return lambda pool: check(pool, way, 2, 2, 3)


def run_again(way: str) -> Callable[[RankPool], None]:
    """Return layers that are run again, held against those that keep everything."""
    check = (
        test_recompute.test_a_way_changes_no_bit_and_keeps_and_runs_what_formulas_say
    )
    return lambda pool: check(pool, way)


def what_is_kept_comes_later(way: str) -> Callable[[RankPool], None]:
    """Return steps whose results and last error are all that went in."""
    check = test_compression.test_what_a_step_keeps_back_comes_later
    return lambda pool: check(pool, way)


def left_with_the_same(way: str) -> Callable[[RankPool], None]:
    """Return steps that leave all ranks with one result."""
    check = test_compression.test_all_ranks_are_left_with_the_same
    return lambda pool: check(pool, way)


CHECKS: dict[str, Callable[[RankPool], None]] = {
    "ddp/no-sync": test_ddp.test_ranks_may_compute_gradients_in_another_order,
    "ddp/sum-for-mean": test_ddp.test_unused_frozen_and_buffers,
    "ddp/no-overlap": lambda pool: test_ddp.test_each_gradient_is_sent_once_and_early(
        pool, ddp_trained, test_ddp.CONFIG
    ),
    "ddp/blocking-wait": lambda pool: (
        test_overlap.test_backward_goes_on_while_calls_are_under_way(pool, "ddp")
    ),
    "ddp/unflushed-bucket": in_every_rank(
        "test_ddp",
        "test_buckets_fill_from_the_last_parameter",
        ([1, 2, 3, 4], 999, 999, [[3, 2, 1, 0]]),
    ),
    "ddp/skipped-collective": (
        test_ddp.test_a_rank_may_send_all_its_buckets_before_another_has_found_what_is_unused
    ),
    "zero/unsharded-state": lambda pool: test_zero.test_each_stage_holds_what_it_says(
        pool, zero_trained, "1 all_reduce"
    ),
    "zero/stale-shard": lambda pool: test_zero.test_equals_the_one_process_run(
        pool, zero_trained, "1 reduce", test_zero.CONFIG
    ),
    "zero/frozen-rate": (
        test_zero.test_a_changed_learning_rate_reaches_the_local_optimizer
    ),
    "fsdp/sum-for-mean": test_fsdp.test_uneven_rows_frozen_weights_and_a_branch,
    "fsdp/unsharded-state": test_fsdp.test_memory_falls_while_the_step_runs,
    "fsdp/wrong-dtype": lambda pool: (
        test_fsdp.test_compute_in_bf16_reduce_in_another_dtype(pool, torch.float32)
    ),
    "fsdp/stale-shard": test_fsdp.test_uneven_rows_frozen_weights_and_a_branch,
    "fsdp_flat/sum-for-mean": (
        test_fsdp_flat.test_what_was_gathered_ahead_in_vain_is_not_stale
    ),
    "fsdp_flat/stale-shard": (
        test_fsdp_flat.test_what_was_gathered_ahead_in_vain_is_not_stale
    ),
    "fsdp_flat/unsharded-state": test_fsdp_flat.test_memory_falls_while_the_step_runs,
    **dict.fromkeys(
        (
            "experts/own-share",
            "experts/router-with-experts",
            "experts/rows-by-sender",
        ),
        test_experts.test_two_ranks_train_what_one_process_trains,
    ),
    "mixed_precision/local-overflow": lambda pool: (
        test_mixed_precision.test_an_overflow_on_one_rank_skips_the_step_of_all(
            pool, 1, 0.0
        )
    ),
    "mixed_precision/scaled-norm": in_every_rank(
        "test_mixed_precision",
        "test_the_scale_is_taken_out_before_the_norm_is_known",
    ),
    "mixed_precision/impatient-growth": lambda pool: (
        test_mixed_precision.test_losses_gradients_and_weights_are_those_of_one_process(
            pool, test_mixed_precision.CONFIG, torch.float16
        )
    ),
    "mixed_precision/rounded-main": in_every_rank(
        "test_mixed_precision", "test_main_weights_keep_what_rounding_takes"
    ),
    "recompute/masks-drawn-anew": run_again("full, inputs sharded"),
    "recompute/common-stream-alone": run_again("full, by hooks"),
    "recompute/first-slice": run_again("full, inputs sharded"),
    "recompute/no-leaf": run_again("full, uniform"),
    "tensor_parallel/f-missing": test_tensor_parallel.test_f_and_g_are_conjugate,
    "tensor_parallel/g-missing": test_tensor_parallel.test_f_and_g_are_conjugate,
    "tensor_parallel/no-overlap": (
        test_tensor_parallel.test_input_gradient_is_on_its_way_while_the_weight_gradient_is_made
    ),
    **{
        f"context_parallel/{name}": in_a_model(way)
        for name, way in (("positions-from-zero", "all-gather"), ("no-average", "ring"))
    },
    **{
        f"context_parallel/{name}": in_attention(way)
        for name, way in (
            ("unsorted-chunks", "ulysses"),
            ("gradients-of-others-kept", "all-gather"),
            ("merged-by-sum", "ring"),
            ("one-hop-short", "ring"),
        )
    },
    "sequence_parallel/wrong-random-stream": (
        test_sequence_parallel.test_shards_drop_differently_and_the_common_stream_agrees
    ),
    "sequence_parallel/no-sync": lambda pool: (
        test_sequence_parallel.test_three_steps_equal_one_process(
            pool, test_sequence_parallel.CONFIG, True
        )
    ),
    **dict.fromkeys(
        ("sequence_parallel/reduced-copies", "sequence_parallel/bias-in-every-part"),
        lambda pool: test_sequence_parallel.test_three_steps_equal_one_process(
            pool, test_sequence_parallel.CONFIG, True
        ),
    ),
    "pipeline/send-order": lambda pool: test_pipeline.test_big_messages_do_not_deadlock(
        pool, "1f1b", 1, False
    ),
    "pipeline/schedule-leak": in_every_rank(
        "test_schedules", "test_peak_in_flight_equals_the_formula"
    ),
    "pipeline/untied-copies": lambda pool: (
        test_pipeline.test_tied_embeddings_stay_equal_and_equal_one_process(
            pool, "1f1b", 1
        )
    ),
    "pipeline/sum-for-mean": lambda pool: (
        test_pipeline.test_three_steps_are_one_process_bit_for_bit(
            pool, "1f1b", 1, False
        )
    ),
    "schedules/one-more-warm-up": in_every_rank(
        "test_schedules", "test_peak_in_flight_equals_the_formula"
    ),
    "schedules/same-table-back": in_every_rank(
        "test_schedules", "test_orders_are_torchs"
    ),
    "schedules/eager-weights": in_every_rank(
        "test_schedules", "test_docstrings_draw_what_is_yielded"
    ),
    "zero_bubble/eager-weights": in_every_rank(
        "test_zero_bubble", "test_the_bubble_is_the_formulas", ("zb-v", (1, 1, 1))
    ),
    "zero_bubble/skipped-first-stage": lambda pool: (
        test_zero_bubble.test_three_steps_are_one_process_bit_for_bit(pool, "zb-h1")
    ),
    "zero_bubble/counted-again": in_every_rank(
        "test_zero_bubble",
        "test_both_halves_are_a_whole_backward_bit_for_bit",
        ("tied, weight first", 0),
    ),
    "muon/parts-alone": lambda pool: test_muon.test_rows_gathered_equal_one_process(
        pool, "untied"
    ),
    "muon/early-gather": lambda pool: (
        test_muon.test_owners_of_whole_tensors_equal_one_process(pool, "untied")
    ),
    "muon/own-norm": test_muon.test_gradients_are_shortened_by_the_norm_of_all,
    "muon/owner-of-all": lambda pool: (
        test_muon.test_owners_of_whole_tensors_equal_one_process(pool, "untied")
    ),
    **{
        f"compression/{name}": what_is_kept_comes_later(way)
        for name, way in (("kept-in-vain", "top-k"), ("early-error", "PowerSGD"))
    },
    "compression/sum-for-mean": lambda pool: (
        test_compression.test_fewer_bits_round_the_mean(pool, "float16", 2e-3)
    ),
    **{
        f"compression/{name}": left_with_the_same(way)
        for name, way in (("own-scale", "uint8"), ("own-q", "PowerSGD"))
    },
    "checkpoint/no-copy": in_every_rank(
        "test_checkpoint", "test_a_staged_state_stays_what_it_was"
    ),
    "checkpoint/replica-twice": in_every_rank(
        "test_checkpoint", "test_replicas_are_shared_out_as_drawn"
    ),
    "checkpoint/name-first": in_a_folder(
        lambda pool, folder: (
            test_checkpoint.test_what_one_rank_meets_all_ranks_are_told(
                pool, folder, "disk", "write: .*rank 1: TypeError"
            )
        )
    ),
    "checkpoint/wrong-start": in_a_folder(
        test_checkpoint.test_ranks_save_together_and_load_another_layout
    ),
    **{
        f"layout/{name}": in_a_cut(cut)
        for name, cut in (
            ("own-share", "dp, experts"),
            ("half-a-router", "tp, experts"),
            ("own-positions", "cp"),
            ("newest-first", "pp"),
        )
    },
    "offload/weights-under-way": in_every_rank(
        "test_offload", "test_a_step_is_over_when_its_weights_are_on_the_device"
    ),
    "offload/last-microbatch": in_every_rank(
        "test_offload", "test_each_microbatch_counts_on_the_host"
    ),
    "offload/whole-weights-stay": lambda pool: (
        test_offload.test_weights_on_the_host_train_as_one_process(pool, True, 1, True)
    ),
    "offload/same-address": in_every_rank(
        "test_offload",
        "test_what_is_freed_and_made_again_at_one_address_is_another_tensor",
    ),
    "recover/next-batch": (
        test_recover.test_a_rerun_has_the_same_batches_and_random_numbers
    ),
    "recover/same-device": test_recover.test_findings_and_exit_codes_of_each_cause,
    "recover/short-digest": test_recover_checks.test_a_bit_is_found_wherever_it_turned,
    "recover/random-numbers": test_recover.test_with_dropout_a_rerun_changes_no_bit,
    "fsdp_state/local-norm": lambda pool: (
        test_fsdp_state.test_clips_by_the_norm_of_all_gradients(pool, 2.0, 0.7)
    ),
    "fsdp_state/counted-everywhere": lambda pool: (
        test_fsdp_state.test_clips_by_the_norm_of_all_gradients(pool, 2.0, 0.7)
    ),
    "fsdp_state/steps-from-zero": in_a_folder(
        test_fsdp_state.test_fsdp_resumes_where_it_was
    ),
    "inference/overwritten-cache": lambda pool: (
        test_inference.test_tokens_are_those_of_one_process_without_a_cache(pool, 1)
    ),
    "inference/forgotten-length": lambda pool: test_inference_apart.check_tokens(
        pool, 1
    ),
    "inference/keys-for-values": lambda pool: test_inference_apart.check_tokens(
        pool, 1
    ),
    "collectives/left-over": lambda pool: (
        test_collectives.test_all_reduce_is_the_sum_at_the_stated_cost(pool, 1001)
    ),
    "collectives/wrong-first-chunk": lambda pool: (
        test_collectives.test_all_reduce_is_the_sum_at_the_stated_cost(pool, 1001)
    ),
    "collectives/send-order": lambda pool: (
        test_collectives.test_ring_adds_in_the_order_of_gloo_for_any_dtype(
            pool, torch.float32
        )
    ),
}
"""By fault, one check of the suite that must not pass with it."""

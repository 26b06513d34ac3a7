"""A step run again: what it finds, on which rank, and that nothing else changes."""

from __future__ import annotations

import math
import struct

import pytest
import torch
import torch.distributed as dist
from hypothesis import given
from hypothesis import strategies as st
from ranks import RankFailure
from torch import nn

from mini_impls.model import GPTConfig, build_model, make_batch, train_one_process

pytestmark = pytest.mark.sampled

CONFIG = GPTConfig(hidden_size=16, ffn_hidden_size=32, num_layers=1)
DROPPING = GPTConfig(
    hidden_size=16, ffn_hidden_size=32, num_layers=1, hidden_dropout=0.3
)
STEPS = 5


def is_bad(result):
    return not bool(result.isfinite())


class Job:
    """One rank of a job that computes a number a step, rightly or not."""

    def __init__(self, rank, place="a", *, fatal=True, saved=None):
        from mini_impls.recover import RerunStateMachine
        from mini_impls.recover_step import RerunDataIterator, SavedState

        self.rank, self.fatal = rank, fatal
        self.machine = RerunStateMachine(rank.group, place, SavedState(rank.device))
        self.iterator = RerunDataIterator(iter(range(100)))
        self.weight = nn.Parameter(torch.zeros(1))
        self.optimizer = torch.optim.SGD([self.weight], 1.0)
        if saved is not None:
            self.machine.load_state_dict(saved)
        self.seen = []

    def step(self, *results):
        """Take a step whose runs have these results; return its exit code."""
        from mini_impls.recover import train_step

        runs = iter(results)

        def forward_backward(batch):
            result = torch.tensor(next(runs))
            self.seen.append((batch, torch.rand(1).item()))
            self.machine.validate_result(result, is_bad, "NaN", fatal=self.fatal)
            self.machine.validate_result(result, is_bad, "again", fatal=self.fatal)
            self.weight.grad = torch.full((1,), -1.0)
            return result

        _, self.saves, code = train_step(
            self.machine, self.iterator, forward_backward, self.optimizer
        )
        assert next(runs, None) is None, "the step did not run so often"
        return code

    @property
    def found(self):
        return self.machine.diagnostic and self.machine.diagnostic.value


def last(rank, *results):
    """Return these results on the last rank, and good ones on the others."""
    return results if rank.rank == rank.world_size - 1 else [1.0] * len(results)


# --- what is found ---


def run_jobs(rank):
    """Return exit codes and findings of five causes, and how often the weight moved."""
    nan, told = math.nan, {}

    job = Job(rank)
    codes = [job.step(1.0), job.step(1.0), job.step(*last(rank, nan, 1.0))]
    told["transient"] = (codes, job.found, job.weight.item(), job.saves)
    assert job.machine.state_dict(job.iterator) == {}, "nothing has to run again"

    first = Job(rank)
    codes = [first.step(1.0), first.step(*last(rank, nan, nan))]
    assert first.saves
    assert first.weight.item() == 1.0, "what is saved is of before the step"
    saved = first.machine.state_dict(first.iterator)
    for name, place, result in (
        ("persistent", "b", 2.0),
        ("correct", "b", nan),
        ("same device", "a", nan),
    ):
        job = Job(rank, place, saved=saved)
        code = job.step(*last(rank, result))
        told[name] = ([*codes, code], job.found, job.weight.item(), job.saves)
    return told


def test_findings_and_exit_codes_of_each_cause(pool):
    everyone = pool.run(run_jobs)
    for of_rank in everyone:
        assert {
            n: (codes, moved, s) for n, (codes, _, moved, s) in of_rank.items()
        } == {
            "transient": ([0, 0, 17], 2.0, True),
            "persistent": ([0, 16, 17], 0.0, False),
            "correct": ([0, 16, 17], 0.0, False),
            "same device": ([0, 16, 16], 0.0, False),
        }
    found = {name: told[1] for name, told in everyone[-1].items()}
    assert found == {
        "transient": "transient_error",
        "persistent": "persistent_error",
        "correct": "correct_result",
        "same device": None,
    }
    for of_rank in everyone[:-1]:
        assert {told[1] for told in of_rank.values()} == {None}


def run_not_fatal(rank):
    """Return what happens where a finding ends nothing."""
    codes, found = [], []
    for second in (1.0, math.nan):
        job = Job(rank, fatal=False)
        codes += [job.step(1.0), job.step(*last(rank, math.nan, second)), job.step(1.0)]
        found.append((job.found, job.weight.item()))
    return codes, found


def test_a_finding_that_is_not_fatal_goes_on_with_the_last_run(pool2):
    first, second = pool2.run(run_not_fatal)
    assert first == ([0] * 6, [(None, 3.0), (None, 3.0)])
    assert second == ([0] * 6, [("transient_error", 3.0), (None, 3.0)])


def run_first_step(rank):
    return Job(rank).step(math.nan)


def test_the_first_step_of_a_job_is_not_judged(pool2):
    assert pool2.run(run_first_step) == [0, 0]


def run_second_call(rank, again):
    """Reject the second of three calls of one message; see which one is compared."""
    from mini_impls.recover import RerunStateMachine
    from mini_impls.recover_step import RerunDataIterator, SavedState

    machine = RerunStateMachine(rank.group, "a", SavedState(rank.device))
    machine.first_iteration_complete = True
    iterator = RerunDataIterator(iter([]))
    for results in ((1.0, math.inf, math.inf), again):
        assert machine.should_run_forward_backward(iterator)
        for result in results:
            machine.validate_result(torch.tensor(result), is_bad, "loss")
    assert not machine.should_run_forward_backward(iterator)
    return machine.should_checkpoint_and_exit()


# Its result comes again and that of the third does not, or the other way round.
@pytest.mark.parametrize(
    ("again", "code"), [((2.0, math.inf, 3.0), 16), ((2.0, 3.0, math.inf), 17)]
)
def test_the_call_that_failed_first_is_the_one_compared(pool2, again, code):
    assert pool2.run(run_second_call, again) == [(True, True, code)] * 2


def run_within_tolerance(rank):
    """Return the exit code of a result that comes back a little different."""
    codes = []
    for tolerance in (0.1, 0.001):
        job = Job(rank)
        job.step(1.0)
        check, results = job.machine.validate_result, iter((100.0, 101.0))

        def validate(result, rejects, message, *, fatal, check=check, t=tolerance):
            check(result, lambda r: r.item() > 50, message, fatal=fatal, tolerance=t)

        job.machine.validate_result = validate
        codes.append(job.step(*results))
    return codes


def test_within_the_tolerance_it_is_the_same_result(pool2):
    assert pool2.run(run_within_tolerance)[0] == [16, 17]


# --- what a rerun starts from ---


def run_replayed(rank):
    """Return the batches and random numbers of each run."""
    torch.manual_seed(rank.rank)
    job = Job(rank)
    job.step(1.0)
    job.step(*last(rank, math.nan, math.nan))
    saved = job.machine.state_dict(job.iterator)
    other = Job(rank, "b", saved=saved)
    other.step(*last(rank, math.nan))
    return job.seen, other.seen


def test_a_rerun_has_the_same_batches_and_random_numbers(pool2):
    for seen, resumed in pool2.run(run_replayed):
        (_, before), first, again = seen
        assert first == again
        assert before != first[1]
        assert [batch for batch, _ in seen] == [0, 1, 1]
        assert [batch for batch, _ in resumed] == [1], "not the first of its iterator"


def test_batches_come_again_as_often_as_they_are_asked_for():
    from mini_impls.recover_step import RerunDataIterator

    iterator = RerunDataIterator(iter(range(9)))
    for first in (0, 2):
        runs = []
        for _ in range(3):
            runs.append([next(iterator), next(iterator)])
            iterator.rewind()
        assert runs == [[first, first + 1]] * 3
        iterator.advance()


def run_after_rerun(rank):
    """Return the batches and random numbers of a run with and without a rerun."""
    seen = []
    for is_struck in (False, True):
        torch.manual_seed(0)
        job = Job(rank, fatal=False)
        job.step(1.0)
        job.step(*(last(rank, math.nan, 1.0) if is_struck else (1.0,)))
        job.step(1.0)
        seen.append(job.seen)
    return seen


def test_after_a_rerun_training_goes_on_as_if_there_had_been_none(pool2):
    for without, struck in pool2.run(run_after_rerun):
        assert struck[:2] == without[:2]
        assert struck[1:3] == [without[1]] * 2
        assert struck[3] == without[2]


def run_caller_state(rank):
    """Return what a caller's own state is at each run of a step."""
    from mini_impls.recover import RerunStateMachine
    from mini_impls.recover_step import RerunDataIterator, SavedState

    state, seen = {"count": 0}, []
    kept = SavedState(
        rank.device, lambda: dict(state), lambda earlier: state.update(earlier)
    )
    machine = RerunStateMachine(rank.group, "a", kept)
    machine.first_iteration_complete = True
    results = iter((1.0, math.nan, math.nan))
    for _ in range(2):
        while machine.should_run_forward_backward(RerunDataIterator(iter([]))):
            seen.append(state["count"])
            state["count"] += 1
            machine.validate_result(torch.tensor(next(results)), is_bad, "loss")
    return [*seen, state["count"]]


def test_what_the_caller_names_is_put_back(pool2):
    # The second step, twice at its start, and at the end: a checkpoint is of before it.
    assert pool2.run(run_caller_state) == [[0, 1, 1, 1]] * 2


def run_past_the_end(rank):
    from mini_impls.recover_step import RerunState

    job = Job(rank, saved={"state": RerunState.RERUNNING_AGAIN_FROM_CHECKPOINT})
    job.step(1.0)


def test_a_job_that_should_have_ended_says_so(pool2):
    with pytest.raises(RankFailure, match="should have ended: it is RERUNNING_AGAIN"):
        pool2.run(run_past_the_end)


# --- a whole training ---


def train(rank, config, struck_steps):
    """Return how far a struck training ends from one process, and its findings."""
    from mini_impls.demos.recover import ReplicaTraining

    w = rank.world_size
    batches = [make_batch(config, step=s, batch_size=4 * w) for s in range(STEPS)]
    training = ReplicaTraining(rank, config, batches, place="a", fatal=False)
    losses, runs = [], []
    for step in range(STEPS):
        struck = step in struck_steps and rank.rank == w - 1
        training.strikes = lambda run, struck=struck: struck and run == 0
        loss, code = training.step()
        assert code == 0
        losses.append(loss)
        runs.append(len(training.runs))
    alone = build_model(config)
    optimizer = torch.optim.AdamW(alone.parameters(), 3e-3)
    expected = train_one_process(alone, optimizer, batches, chunks=w)
    pairs = zip(training.model.parameters(), alone.parameters(), strict=True)
    return (
        max((a - b).abs().max().item() for a, b in pairs),
        max(abs(a - b) for a, b in zip(losses, expected, strict=True)),
        runs,
        hash(tuple(losses)),
    )


@pytest.fixture(scope="module")
def pool3():
    from ranks import RankPool

    pool = RankPool(3)
    yield pool
    pool.close()


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_struck_and_run_again_it_ends_where_one_process_ends(request, ranks):
    pool = request.getfixturevalue(f"pool{ranks}")
    for parameter, loss, runs, _ in pool.run(train, CONFIG, {2, 4}):
        # AdamW divides by small sums, which one process adds in another order.
        assert parameter < 2e-4
        assert loss < 1e-5
        assert runs == [1, 1, 2, 1, 2]


def test_with_dropout_a_rerun_changes_no_bit(pool2):
    whole = [found[3] for found in pool2.run(train, DROPPING, set())]
    struck = [found[3] for found in pool2.run(train, DROPPING, {2, 3})]
    assert struck == whole


def test_plainly_a_rejected_result_ends_the_run():
    from mini_impls.recover import check_result

    check_result(torch.tensor(1.0), is_bad, "loss")
    with pytest.raises(RuntimeError, match=r"unexpected result nan \(loss\)"):
        check_result(torch.tensor(math.nan), is_bad, "loss")


# --- how far two results are apart ---

FLOATS = st.floats(width=32) | st.sampled_from(
    [0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0]
)


@given(FLOATS, FLOATS)
def test_a_comparison_is_a_distance_whatever_the_floats(a, b):
    from mini_impls.recover_step import compare_floats

    apart = compare_floats(a, b)
    assert apart == compare_floats(b, a)
    same = a == b or (math.isnan(a) and math.isnan(b))
    assert (apart == 0.0) is same or apart == pytest.approx(0.0, abs=1e-300)
    assert 0.0 <= apart <= 2.0000001 or apart == math.inf
    assert (apart == math.inf) is (
        not same and not (math.isfinite(a) and math.isfinite(b))
    )


def test_the_distance_is_of_the_mean_of_both():
    from mini_impls.recover_step import compare_floats

    assert compare_floats(1.0, 0.5) == pytest.approx(2 / 3)
    assert compare_floats(1.0, 0.0) == 2.0


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_one_turned_bit_of_a_number_is_another_result(value):
    from mini_impls.recover_step import compare_floats

    (bits,) = struct.unpack("I", struct.pack("f", value))
    for bit in range(32):
        (other,) = struct.unpack("f", struct.pack("I", bits ^ (1 << bit)))
        assert compare_floats(value, other) > 0 or value == other == 0.0


# --- what others reduce is left alone ---


def count_calls(rank):
    """Return how many reductions a step without a finding adds, and their bytes."""
    from mini_impls.traffic import CollectiveCounter

    job = Job(rank)
    job.step(1.0)
    with CollectiveCounter() as sent:
        job.step(1.0)
    quiet = (sent.counts(), sent.payload_bytes())
    with CollectiveCounter() as sent:
        job.step(*last(rank, math.nan, 1.0))
    dist.barrier(rank.group)
    return quiet, (sent.counts(), sent.payload_bytes())


def test_a_step_asks_once_and_a_rerun_asks_for_two_answers_more(pool2):
    for quiet, struck in pool2.run(count_calls):
        assert quiet == ({"all_reduce": 1}, {"all_reduce": 4})
        assert struck == ({"all_reduce": 2}, {"all_reduce": 12})

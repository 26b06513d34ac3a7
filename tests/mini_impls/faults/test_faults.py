"""Every fault shows what it is for, and is noticed by the suite."""

from collections import Counter

import pytest
from mutant_pool import HANG_S, MutantPool, observe_apart
from mutants import CHECKS

from mini_impls.faults.fault import MINIS_ROOT, Mutant, find, install, read_faults
from mini_impls.faults.run import observe, run_work
from mini_impls.faults.show import resolve_guards
from mini_impls.faults.symptoms import SYMPTOMS, Outcome, Symptom, refutation, shown
from mini_impls.faults.works import get_work
from readerkit.app.library import open_library
from readerkit.app.mini_names import SAYS
from tests.conftest import REAL_CACHE
from tests.quick import quick_each

pytestmark = pytest.mark.sampled

FAULTS = read_faults()
ALL = pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.key)

ONE_OF_EACH_MINI = pytest.mark.parametrize(
    "fault",
    quick_each(FAULTS, lambda fault: fault.mini),
    ids=lambda fault: fault.key,
)

HANGS = {"ddp/skipped-collective", "pipeline/send-order", "collectives/send-order"}
ERRORS = {
    "checkpoint/replica-twice",
    "checkpoint/name-first",
    "checkpoint/wrong-start",
    "offload/weights-under-way",
    "schedules/same-table-back",
}


@pytest.fixture(scope="module")
def as_it_is():
    """What each work measures without a fault."""
    seen = {}

    def get(pool, work):
        if work not in seen:
            seen[work] = Outcome(pool.run(run_work, work, None, 30.0))
        return seen[work]

    return get


def test_every_fault_has_a_name_of_its_own_and_a_check():
    keys = [fault.key for fault in FAULTS]
    assert len(set(keys)) == len(keys)
    assert CHECKS.keys() == set(keys)


def test_every_mini_has_three_faults_at_least():
    of = Counter(fault.mini for fault in FAULTS)
    assert {*of} == {*SAYS}
    assert not {mini: count for mini, count in of.items() if count < 3}


@ALL
def test_a_mutant_is_another_program_with_the_rest_left_alone(fault):
    mutant = Mutant.make(fault)
    before, after = mutant.lines(), mutant.source().splitlines()
    assert (MINIS_ROOT / fault.at.file).read_text().splitlines() == before
    kept = len(before) - mutant.span.last
    assert after[: mutant.span.first - 1] == before[: mutant.span.first - 1]
    assert after[len(after) - kept :] == before[mutant.span.last :]
    assert after != before
    compile(mutant.source(), fault.at.file, "exec")
    changed = [line for line in mutant.diff() if line[:1] in "+-"]
    assert any(line.startswith("+") for line in changed)


@ALL
def test_the_question_can_be_answered(fault):
    assert callable(get_work(fault.work))
    symptoms = [choice.symptom for choice in fault.choices]
    assert len(fault.choices) == 4
    assert len(set(symptoms)) == 4, "two answers would be right"
    assert set(symptoms) <= SYMPTOMS.keys()


@pytest.fixture(scope="module")
def library():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("READERKIT_CACHE", str(REAL_CACHE))
        yield open_library()


@ALL
def test_guarding_lines_resolve_at_the_pins(fault, library):
    guards, missing = resolve_guards(library, fault)
    assert guards and not missing
    for lines in guards:
        assert lines.guard.note is None or lines.guard.note in library.book.annotations


@ONE_OF_EACH_MINI
def test_fault_shows_one_of_its_answers_and_a_check_fails(
    fault, pool2, as_it_is, tmp_path
):
    mutant = Mutant.make(fault)
    right = as_it_is(pool2, fault.work)
    check = CHECKS[fault.key]
    check(pool2)
    hangs = fault.key in HANGS
    pool = MutantPool(mutant.write(tmp_path), hangs=hangs)
    try:
        if not hangs:
            if fault.key in ERRORS:
                wrong = observe_apart(fault)
            else:
                wrong = Outcome(pool.run(run_work, fault.work, None, 30.0))
            symptoms = [c.symptom for c in fault.choices]
            (index,) = shown(right, wrong, symptoms)
            for symptom in (*symptoms[:index], *symptoms[index + 1 :]):
                assert_refuted(right, wrong, symptom)
        with pytest.raises(AssertionError) as caught:
            check(pool)
        assert hangs or "gave no answer" not in str(caught.value), "it was only slow"
    finally:
        pool.close()


def assert_refuted(right, wrong, symptom):
    """A wrong answer is told what it would have been, and what was measured instead."""
    names = SYMPTOMS[symptom].measures
    told_by = [n for n in right.ranks[0] if names and n in names]
    assert told_by or symptom in ("hang", "error", "nothing"), "the work measures none"
    text = refutation(right, wrong, symptom)
    assert text.startswith(f"it would be {SYMPTOMS[symptom].sign}; ")
    for name in () if wrong.failure else told_by:
        assert f"{name} is " in text


@pytest.mark.slow
@pytest.mark.parametrize("key", sorted(HANGS))
def test_a_hang_ends_and_says_who_was_waited_for(key, as_it_is, pool2):
    fault = find(FAULTS, *key.split("/"))
    right = as_it_is(pool2, fault.work)
    wrong = observe(fault.work, Mutant.make(fault), world_size=2, timeout_s=HANG_S)
    assert wrong.hung, wrong.failure
    symptoms = [choice.symptom for choice in fault.choices]
    assert [symptoms[i] for i in shown(right, wrong, symptoms)] == ["hang"]
    if key == "ddp/skipped-collective":
        assert "rank 1 is missing: it had already returned" in wrong.failure.said


def test_a_mini_that_is_imported_already_is_not_replaced(tmp_path):
    mutant = Mutant.make(FAULTS[0])
    with pytest.raises(RuntimeError, match="ddp is imported already"):
        install(mutant.write(tmp_path))


def test_a_measure_by_a_mistyped_name_is_an_error_and_no_zero():
    typo = "apart between rank"
    for ask in (
        lambda: Outcome([{typo: 1.0}]),
        lambda: Outcome([{"first loss": 1.0}]).most(typo),
        lambda: Outcome().column(typo),
        lambda: Symptom(SYMPTOMS["drift"].shown, "nothing", (typo,)),
    ):
        with pytest.raises(KeyError, match="no measure is called"):
            ask()

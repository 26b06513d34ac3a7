"""Questions about the reader's own ledger, labs and kept comparisons."""

import shutil

import pytest
from msgspec import json

from readerkit.app.begin_quiz import begin, now
from readerkit.app.folders import data_folder, open_ledger
from readerkit.app.own_figures import OwnFigures, keep_guesses
from readerkit.app.quiz_banks import QuizBanks, open_history
from readerkit.budget import Ceilings
from readerkit.errors import ReaderkitError
from readerkit.labs.results import AllReduce, DdpResult, DdpStep, Environment, Training
from readerkit.quiz.selection import WantedQuiz
from readerkit.quiz.session import Session
from tests.helpers import ROOT
from tests.readerkit.budget.jobs import job


@pytest.fixture(scope="module")
def bank():
    return QuizBanks(ROOT).bank(35)


@pytest.fixture
def history():
    return open_history()


def spend(*runs):
    """Settle runs of so many cents and seconds in the ledger of this user."""
    ledger = open_ledger()
    if not ledger.path.exists():
        ledger.create(Ceilings())
    for cents, seconds in runs:
        entry = ledger.reserve(job(2 * cents), "true")
        ledger.settle(entry, cents, seconds=seconds, exit_code=0)


def test_what_was_asked_stays_the_same_when_the_ledger_goes_on(bank, history):
    spend((60, 1800), (50, 600))
    wanted = WantedQuiz(only=("own-rate", "own-dear-entry", "own-planned-paid"))
    session = begin(bank, history, wanted)
    assert "2 settled runs took 40 minutes together and cost $1.10." in (
        session.question().prompt
    )
    keys = [session.variant(at).key for at in range(3)]
    assert keys == [pytest.approx(1.65), 2, 50]
    assert session.answer("1.65 $").right
    spend((90, 60))
    row = history.unfinished(35, "2026")
    again = Session.resume(bank, history, row, clock=now)
    assert again.question().prompt == session.question().prompt
    assert [again.variant(at).key for at in range(3)] == keys
    anew = begin(bank, history, WantedQuiz(only=("own-dear-entry",)))
    assert anew.variant(0).key == 3


def test_who_has_nothing_is_asked_nothing_and_told_how(bank, history):
    for seed in range(3):
        wanted = WantedQuiz(count=60, seed=seed)
        asked = begin(bank, history, wanted).row.questions
        assert len(asked) == 60
        assert not any(bank.questions[name].own_figures for name in asked)
    wanted = WantedQuiz(only=("own-rate", "own-ddp-wire", "col-share"))
    session = begin(bank, history, wanted)
    assert session.row.questions == ("col-share",)
    told = {each.id: each.text for each in session.left_out}
    assert "readerkit budget run" in told["own-rate"]
    assert "readerkit compare ddp --save" in told["own-ddp-wire"]
    with pytest.raises(ReaderkitError, match="lab 04 --run makes it"):
        begin(bank, history, WantedQuiz(only=("own-fsdp-efficiency",)))


def test_exam_asks_everybody_the_same(bank, history):
    spend((60, 1800))
    asked = begin(bank, history, WantedQuiz(exam=True, count=180)).row.questions
    assert len(asked) > 100
    assert not any(bank.questions[name].own_figures for name in asked)


def test_kept_comparison_is_asked_about(bank, history):
    kept = data_folder() / "records"
    kept.mkdir(parents=True)
    shutil.copy(ROOT / "annotations/records/ddp_torch.json", kept)
    wanted = WantedQuiz(only=("own-ddp-wire", "own-ddp-overhead"))
    session = begin(bank, history, wanted)
    assert session.variant(0).key == 408_064  # 2 (2 - 1) / 2 of the payload
    assert session.variant(1).key == (410_368 - 408_064) / 4


def test_lab_is_asked_about_with_the_guess_before_it(tmp_path):
    steps = [
        DdpStep(512, 8_000_000, ranks, 8 * ranks, 0.1, 0.05 * (ranks - 1), 0.05)
        for ranks in (1, 2)
    ]
    machine = Environment("3", "2", "linux", "gloo", "cpu", 2, 0.0)
    times = AllReduce(256, 0.0002, 0.0002), AllReduce(16_000_000, 0.02, 0.02)
    training = Training((), (), 0.0, ())
    result = DdpResult("01", "", "", {}, machine, 2, 3, training, times, tuple(steps))
    path = tmp_path / "35-lab-01.json"
    path.write_bytes(json.encode(result))
    own = OwnFigures(tmp_path)
    names = ("large_mb", "large_us", "alone_rate", "rate", "all_reduce_ms")
    values = own.of(f"lab01.{name}" for name in names).values()
    assert [*values] == pytest.approx([16, 20_000, 53.33, 80, 50], rel=1e-3)
    with pytest.raises(ReaderkitError, match="no guess of yours"):
        own.of(["guess.guessed"])
    keep_guesses(path, [1000.0, None])
    found = OwnFigures(tmp_path).of(["guess.guessed", "guess.measured"])
    assert [*found.values()] == [1000, pytest.approx(100)]

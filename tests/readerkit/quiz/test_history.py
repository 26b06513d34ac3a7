"""The history: nothing acknowledged is lost, nothing is kept twice."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading

import pytest
from msgspec.structs import asdict, replace

from readerkit.quiz.history import History, HistoryError
from readerkit.quiz.history_rows import MIGRATIONS, AnswerRow, Flag, SessionRow
from readerkit.quiz.messages import encode
from readerkit.quiz.report import exported
from tests.helpers import ROOT

SESSION = SessionRow(
    "s1", 7, 1, 3, "practice", 2, ("pick", "bytes"), "2026-01-01T00:00:00+00:00"
)
ANSWER = AnswerRow(
    session="s1",
    position=0,
    attempt=1,
    question="pick",
    topic="all",
    objective="one",
    difficulty=1,
    seed=3,
    bank_version=1,
    answer="a",
    credit=1.0,
    choices=3,
    seconds=2.5,
    answered="2026-01-01T00:00:05+00:00",
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "quiz.sqlite3"


def test_what_was_kept_is_read_again(path):
    history = History(path)
    history.start(SESSION)
    assert history.record(ANSWER)
    history.close()
    again = History(path)
    assert again.session("s1") == SESSION
    assert again.answers("s1") == [ANSWER]
    assert again.session("s2") is None


def test_one_try_is_kept_once(path):
    history = History(path)
    history.start(SESSION)
    assert history.record(ANSWER)
    assert not history.record(replace(ANSWER, answer="b"))
    assert history.answers() == [ANSWER]
    assert history.record(replace(ANSWER, attempt=2))


def test_only_a_session_that_was_begun_and_not_ended_is_unfinished(path):
    history = History(path)
    history.start(SESSION)
    assert history.unfinished(7, "2026") is None, "nothing was answered"
    history.record(ANSWER)
    assert history.unfinished(7, "2026") == SESSION
    assert history.unfinished(8, "2026") is None
    history.end("s1", "2026-01-01T01:00:00+00:00")
    assert history.unfinished(7, "2026") is None


def test_exam_is_unfinished_without_an_answer_until_its_time_is_over(path):
    history = History(path)
    limit = "2026-01-01T01:00:00+00:00"
    history.start(replace(SESSION, mode="exam", deadline=limit))
    for now, is_open in (("2026-01-01T00:59", True), ("2026-01-01T01:01", False)):
        assert (history.unfinished(7, now, mode="exam") is not None) == is_open
        assert bool(history.open_exams(now)) == is_open, "what locks can be ended"


def test_what_a_wrong_clock_dated_ahead_is_not_the_latest(path):
    history = History(path)
    history.start(SESSION)
    history.record(ANSWER)
    ahead = "2026-02-01T00:00:00+00:00"
    history.start(replace(SESSION, id="s2", started=ahead))
    ahead_of = replace(ANSWER, session="s2", answered=ahead, answer="b")
    history.record(ahead_of)
    now = "2026-01-01T00:01:00+00:00"
    assert history.unfinished(7, now).id == "s1"
    assert history.undo(now) == ANSWER
    assert history.undo(now) == ahead_of, "there is no other"
    assert history.undo(now) is None


def test_the_last_try_is_taken_back_whatever_the_clock_said_of_it(path):
    history = History(path)
    history.start(SESSION)
    second = replace(ANSWER, attempt=2, answered="2026-02-01T00:00:00+00:00")
    for each in (ANSWER, second):
        history.record(each)
    now = "2026-01-01T00:01:00+00:00"
    assert [history.undo(now), history.undo(now)] == [second, ANSWER]


def test_tables_are_strict(path):
    History(path).close()
    connection = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError):
        connection.execute(
            "INSERT INTO session VALUES"
            " ('x', 'seven', 1, 1, 'practice', 1, '[]', 't', NULL, NULL, 0, '{}')"
        )
    with pytest.raises(sqlite3.IntegrityError):
        connection.execute(
            "INSERT INTO session VALUES"
            " ('x', 7, 1, 1, 'play', 1, '[]', 't', NULL, NULL, 0, '{}')"
        )
    connection.close()


def test_log_is_written_ahead(path):
    History(path).close()
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


def test_newer_history_is_refused_and_left_alone(path):
    History(path).close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(HistoryError, match="newer readerkit"):
        History(path)
    assert path.read_bytes() == before


def test_older_history_is_migrated_with_a_backup(path):
    path.parent.mkdir(parents=True)
    first = sqlite3.connect(path)
    first.executescript(MIGRATIONS[0] + "PRAGMA user_version = 1;")
    values = asdict(SESSION) | {"questions": json.dumps(SESSION.questions)}
    for table, row in (("session", values), ("answer", asdict(ANSWER))):
        later = ("official", "hinted", "figures")
        row = {k: v for k, v in row.items() if k not in later}
        slots = ", ".join("?" * len(row))
        first.execute(f"INSERT INTO {table} VALUES ({slots})", [*row.values()])
    first.commit()
    first.close()
    newer = History(path)
    assert newer.answers() == [ANSWER]
    assert newer.session("s1") == SESSION, "an old exam does not count"
    assert newer.flags() == newer.suspensions() == []
    newer.flag(Flag("pick", "two are right", 7, SESSION.started))
    assert [each.words for each in newer.flags()] == ["two are right"]
    newer.close()
    backup = path.with_name("quiz.sqlite3.v1.bak")
    old = sqlite3.connect(backup)
    assert old.execute("PRAGMA user_version").fetchone() == (1,)
    assert old.execute("SELECT count(*) FROM answer").fetchone() == (1,)
    old.close()


def test_failed_migration_leaves_the_old_history(path):
    history = History(path)
    history.start(SESSION)
    history.close()
    broken = "ALTER TABLE session ADD COLUMN mood TEXT; CREATE TABLE answer (a TEXT);"
    with pytest.raises(HistoryError):
        History(path, [*MIGRATIONS, broken])
    assert History(path).session("s1") == SESSION


@pytest.mark.parametrize("data", [b"not a database, but long enough to be one" * 100])
def test_what_is_no_history_is_refused(path, data):
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    with pytest.raises(HistoryError, match="move the file away"):
        History(path)
    assert path.read_bytes() == data


def test_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(HistoryError, match="READERKIT_DATA"):
        History(tmp_path / "file" / "quiz.sqlite3")


def test_delete_forgets_everything(path):
    history = History(path)
    history.start(SESSION)
    history.record(ANSWER)
    assert history.delete() == 1
    assert exported(history, "9").answers == ()
    history.close()
    assert b"pick" not in path.read_bytes()


def test_export_is_plain_json(path):
    history = History(path)
    history.start(SESSION)
    history.record(ANSWER)
    values = json.loads(encode(exported(history, "9")))
    assert values["answers"][0]["question"] == "pick"
    assert values["sessions"][0]["questions"] == ["pick", "bytes"]


def test_many_writers_at_once_lose_nothing(path):
    History(path).close()

    def write(number: int) -> None:
        history = History(path)
        history.start(replace(SESSION, id=f"s{number}"))
        for position in range(20):
            assert history.record(
                replace(ANSWER, session=f"s{number}", position=position)
            )
        history.close()

    threads = [threading.Thread(target=write, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(History(path).answers()) == 120


def test_a_history_that_several_begin_at_once_is_theirs(tmp_path):
    """Each makes the file, or waits for who does."""
    refused = []

    def begin(path, together):
        together.wait()
        try:
            History(path).close()
        except HistoryError as error:
            refused.append(error)

    for number in range(40):
        given = tmp_path / f"{number}.sqlite3", threading.Barrier(4)
        threads = [threading.Thread(target=begin, args=given) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not refused


# Imports as little as it can: a hundred of them are started.
WRITER = """
import json, sys
from pathlib import Path
from readerkit.quiz.history import History
from readerkit.quiz.history_rows import AnswerRow, Flag, SessionRow
path, session, answer = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
history = History(Path(path))
history.start(SessionRow(**session))
for position in range(100_000):
    history.record(AnswerRow(**{**answer, "position": position}))
    print(position, flush=True)
"""


@pytest.mark.slow
def test_killed_100_times_every_acknowledged_answer_is_there_once(path):
    dice = random.Random(1)
    acknowledged: dict[str, int] = {}
    for number in range(100):
        name = f"run{number}"
        rows = [replace(SESSION, id=name), replace(ANSWER, session=name)]
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)]
            + [json.dumps(asdict(row)) for row in rows],
            stdout=subprocess.PIPE,
            cwd=ROOT,
        )
        for _ in range(dice.randrange(1, 12)):
            last = process.stdout.readline()
        os.kill(process.pid, signal.SIGKILL)
        rest = process.stdout.read().split(b"\n")
        process.wait()
        process.stdout.close()
        # What came through whole was said after its answer was on disk.
        said = [int(last), *(int(line) for line in rest[:-1] if line)]
        acknowledged[name] = max(said)
    history = History(path)
    kept: dict[str, list[int]] = {}
    for answer in history.answers():
        kept.setdefault(answer.session, []).append(answer.position)
    assert set(kept) == set(acknowledged)
    for name, last in acknowledged.items():
        # In order, without a gap, none twice; at most one that was not said yet.
        assert kept[name] == list(range(len(kept[name])))
        assert len(kept[name]) - 1 in (last, last + 1)

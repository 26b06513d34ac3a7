"""``readerkit quiz stats | export | delete``: what the history knows."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from readerkit.commands.options import json_option
from readerkit.wording.next_command import typed
from readerkit.wording.numbers import counted

if TYPE_CHECKING:
    from readerkit.quiz.history import History
    from readerkit.quiz.history_messages import QuizTaken


MAX_LISTED = 20
"""Quizzes that stats names, the latest."""


@click.command(short_help="What you took, and how well you know each topic.")
@json_option
def stats(as_json: bool) -> None:
    """Show every quiz you took, and your state by topic.

    \b
    Example:
        readerkit quiz stats
    """
    from readerkit.app.quiz_banks import open_history
    from readerkit.quiz.history_rows import timestamp
    from readerkit.quiz.messages import encode_wide
    from readerkit.quiz.report import summary
    from readerkit.quiz.review import due_questions

    history, now = open_history(to_read=True), datetime.now(UTC)
    coming = due_questions(history.told_answers(timestamp(now)))
    due = [each.told(now) for each in coming]
    told = summary(history, now=timestamp(now), due=due)
    _tell_damage(history)
    if as_json:
        click.echo(encode_wide(told))
        return
    if not told.quizzes:
        click.echo(f"Nothing was answered yet: {typed('quiz', '35')}")
        return
    if (earlier := len(told.quizzes) - MAX_LISTED) > 0:
        click.echo(f"{counted(earlier, 'quiz', 'quizzes')} before, all in --json")
    for each in told.quizzes[-MAX_LISTED:]:
        state = "" if each.ended else "   left unfinished"
        click.echo(
            f"{each.started[:16].replace('T', ' ')}  phase {each.phase}  "
            f"{_mode(each):13}  {each.score:4.0%} of {each.questions}{state}"
        )
    click.echo("\nBy topic, each question as you last answered it:")
    for topic, share in told.topics.items():
        low, high = share.interval
        click.echo(
            f"  {topic:20} {share.score:4.0%} of {share.questions:2}"
            f"   95% interval {low:.0%} to {high:.0%}"
        )
    if due:
        count = sum(each.due_now for each in due)
        first = due[0].due[:16].replace("T", " ")
        click.echo(
            f"\n{count} due now; the earliest: {first} UTC. {typed('quiz', 'review')}"
        )


def _tell_damage(history: History) -> None:
    from readerkit.app.quiz_banks import damage

    if lacking := damage(history):
        click.echo(f"readerkit: {lacking}", err=True)


def _mode(taken: QuizTaken) -> str:
    """Return what kind of quiz it was; an exam that does not count is practice."""
    is_practice = taken.mode == "exam" and not taken.official
    return "practice exam" if is_practice else taken.mode


@click.command(short_help="Write the whole history as JSON.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), required=False)
def export(file: Path | None) -> None:
    """Write the whole history as JSON, to FILE or to the screen.

    \b
    Example:
        readerkit quiz export answers.json
    """
    from readerkit.app.quiz_banks import open_history
    from readerkit.quiz.messages import encode_wide
    from readerkit.quiz.report import exported

    history = open_history(to_read=True)
    text = encode_wide(exported(history)) + "\n"
    _tell_damage(history)
    if file is None:
        click.echo(text, nl=False)
        return
    from readerkit.upstreams.store import write_atomically

    write_atomically(file.absolute(), text.encode(), private=True)
    click.echo(f"wrote {file}")


@click.command(short_help="Take the last answer back.")
def undo() -> None:
    """Take the last answer back, as if it had not been typed; not in an exam.

    \b
    Example:
        readerkit quiz undo
    """
    from readerkit.app.quiz_banks import open_history
    from readerkit.errors import ReaderkitError

    history = open_history()
    last = history.undo()
    if last is None:
        raise ReaderkitError("there is no answer to take back")
    session = history.session(last.session)
    left = [each for each in history.answers(last.session)]
    resume = typed("quiz", str(session.phase), "--resume") if session and left else ""
    what = last.answer.replace("\n", "; ") or "a skip"
    click.echo(f"took back {last.question}: {what}")
    if resume:
        click.echo(f"To be asked again: {resume}")


@click.command("import", short_help="Add what another machine exported.")
@click.argument("file", type=click.Path(dir_okay=False, exists=True, path_type=Path))
def import_file(file: Path) -> None:
    """Add a history that quiz export wrote to the one of this machine.

    What is there already is left as it is, and exams from elsewhere do not count in
    progress.

    \b
    Example:
        readerkit quiz import answers.json
    """
    from msgspec import MsgspecError
    from msgspec.json import decode

    from readerkit.app.quiz_banks import open_history
    from readerkit.errors import ReaderkitError
    from readerkit.quiz.history import MIGRATIONS
    from readerkit.quiz.history_messages import HistoryExport

    try:
        told = decode(file.read_bytes(), type=HistoryExport)
        if told.version > len(MIGRATIONS):
            raise ReaderkitError(
                f"{file}: got a history of version {told.version}, expected at most "
                f"{len(MIGRATIONS)}: update this readerkit"
            )
        sessions, answers = open_history().add(told.sessions, told.answers)
    # SQLite's numbers have 64 bits, JSON's any.
    except (OSError, MsgspecError, OverflowError, RecursionError) as error:
        raise ReaderkitError(
            f"{file}: {error}: expected what {typed('quiz', 'export')} wrote"
        ) from None
    left = f"; {counted(len(told.damaged), 'damaged row')} left out"
    click.echo(
        f"added {counted(sessions, 'quiz', 'quizzes')} and {counted(answers, 'answer')}"
        + (left if told.damaged else "")
    )


@click.command(short_help="Forget every answer.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete(yes: bool) -> None:
    """Forget every quiz and every answer on this machine.

    \b
    Example:
        readerkit quiz delete --yes
    """
    from readerkit.app.quiz_banks import open_history

    history = open_history()
    if not yes:
        click.confirm(
            f"Forget {counted(len(history.answers()), 'answer')}?", abort=True
        )
    click.echo(f"forgot {counted(history.delete(), 'answer')}")

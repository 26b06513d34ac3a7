"""``readerkit quiz stats | undo | import | delete``: what the history knows."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from readerkit.commands.options import WholeRange, book_option, json_option
from readerkit.commands.quiz_options import filter_options
from readerkit.errors import MAX_SHOWN_FAULTS
from readerkit.terminal.completing import names
from readerkit.terminal.folded import tell
from readerkit.wording.next_command import typed
from readerkit.wording.numbers import counted

if TYPE_CHECKING:
    from msgspec import Struct

    from readerkit.quiz.history_messages import Imported, QuizTaken


MAX_LISTED = 20
"""Quizzes that stats names, the latest."""


@click.command(short_help="What you took, and how well you know each topic.")
@click.option("--items", is_flag=True, help="By question, the least often right first.")
@click.option(
    "--phase",
    type=WholeRange(0, 999),
    help="With --items: by default the first that the book has.",
    shell_complete=names("phases"),
)
@filter_options
@json_option
@book_option
def stats(
    items: bool, phase: int | None, as_json: bool, book: Path | None, **wanted: Any
) -> None:
    """Show every quiz you took, and your state by topic; or each question.

    With --items: the share right at the first try, the median time, and how right goes
    with the score of the rest of the same quiz (point-biserial). Nothing is said below
    5 answers, of the last one below 10.

    \b
    Example:
        readerkit quiz stats
        readerkit quiz stats --items --kind numeric
    """
    if items:
        _tell_items(phase, book, wanted, as_json=as_json)
        return
    if phase is not None or any(wanted.values()):
        raise click.UsageError("these choose among questions: expected --items too")
    from readerkit.app.due_questions import coming_back
    from readerkit.app.quiz_banks import open_history, tell_damage
    from readerkit.quiz.history_rows import timestamp
    from readerkit.quiz.messages import encode_wide
    from readerkit.quiz.report import summary
    from readerkit.quiz.selection import suspended
    from readerkit.terminal.pager import show_paged

    history, now = open_history(to_read=True), datetime.now(UTC)
    coming = coming_back(history, now)
    aside = suspended(history)
    due = [each.told(now) for each in coming if each.question not in aside]
    told = summary(history, now=timestamp(now), due=due)
    tell_damage(history)
    if as_json:
        click.echo(encode_wide(told))
        return
    if not told.quizzes:
        tell(f"Nothing was answered yet: {typed('quiz', '35')}")
        return
    rows = []
    if (earlier := len(told.quizzes) - MAX_LISTED) > 0:
        rows.append(f"{counted(earlier, 'quiz', 'quizzes')} before, all in --json")
    for each in told.quizzes[-MAX_LISTED:]:
        state = "" if each.ended else "   left unfinished"
        rows.append(
            f"{each.started[:16].replace('T', ' ')}  phase {each.phase}  "
            f"{_mode(each):13}  {each.score:4.0%} of {each.questions}{state}"
        )
    rows.append("\nBy topic, each question as you last answered it:")
    for topic, share in told.topics.items():
        low, high = share.interval
        rows.append(
            f"  {topic:20} {share.score:4.0%} of {share.questions:2}"
            f"   95% interval {low:.0%} to {high:.0%}"
        )
    if due:
        count = sum(each.due_now for each in due)
        first = due[0].due[:16].replace("T", " ")
        rows.append(
            f"\n{count} due now; the earliest: {first} UTC. {typed('quiz', 'review')}"
        )
    show_paged("\n".join(rows))


def _tell_items(
    phase: int | None, book: Path | None, wanted: dict[str, Any], *, as_json: bool
) -> None:
    from readerkit.app.begin_quiz import now
    from readerkit.app.quiz_banks import QuizBanks, open_history, tell_damage
    from readerkit.quiz.history_rows import timestamp
    from readerkit.quiz.item_statistics import item_statistics
    from readerkit.quiz.selection import WantedQuiz, matching
    from readerkit.terminal.pager import show_paged

    banks = QuizBanks.at(book)
    bank = banks.bank(banks.first_phase() if phase is None else phase)
    among = matching(bank, WantedQuiz(**wanted))
    history = open_history(to_read=True)
    asked = [name for name in bank.questions if name in among]
    found = item_statistics(asked, history.told_answers(timestamp(now())))
    tell_damage(history)
    if as_json:
        from msgspec import to_builtins

        from readerkit.terminal.as_json import print_json

        print_json(to_builtins(found))
        return
    rows = [f"{'question':26} answers  right   time  with the rest (answers)"]
    for each in filter(lambda item: item.answers, found):
        right = "-" if each.right is None else f"{each.right:.0%}"
        time = "-" if each.seconds is None else f"{each.seconds:.0f} s"
        rest = "-" if each.discrimination is None else f"{each.discrimination:+.2f}"
        rows.append(
            f"{each.id:26} {each.answers:7}  {right:>5}  {time:>5}  "
            f"{rest:>5} ({each.pairs})"
        )
    silent = sum(not each.answers for each in found)
    rows.append(f"{counted(silent, 'question')} without an answer")
    show_paged("\n".join(rows))


def _mode(taken: QuizTaken) -> str:
    """Return what kind of quiz it was; an exam that does not count is practice."""
    is_practice = taken.mode == "exam" and not taken.official
    return "practice exam" if is_practice else taken.mode


@click.command(short_help="Take the last answer back.")
@json_option
def undo(as_json: bool) -> None:
    """Take the last answer back, as if it had not been typed; not in an exam.

    \b
    Example:
        readerkit quiz undo
    """
    from readerkit.app.begin_quiz import now
    from readerkit.app.quiz_banks import open_history
    from readerkit.errors import ReaderkitError
    from readerkit.quiz.history_messages import Undone
    from readerkit.quiz.history_rows import timestamp

    history = open_history()
    last = history.undo(timestamp(now()))
    if last is None:
        raise ReaderkitError("there is no answer to take back")
    session = history.session(last.session)
    left = [each for each in history.answers(last.session)]
    resume = typed("quiz", str(session.phase), "--resume") if session and left else ""
    if as_json:
        _say(Undone(last.question, last.answer, resume))
        return
    what = last.answer.replace("\n", "; ") or "a skip"
    tell(f"took back {last.question}: {what}")
    if resume:
        tell(f"To be asked again: {resume}")


@click.command("import", short_help="Add what another machine exported.")
@click.argument("file", type=click.Path(dir_okay=False, exists=True, path_type=Path))
@json_option
@book_option
def import_file(file: Path, as_json: bool, book: Path | None) -> None:
    """Add a history that quiz export wrote to the one of this machine.

    All of it or nothing: a row that no quiz keeps is named, with what was expected.
    What is there already is left as it is, and exams from elsewhere do not count in
    progress. Answers are marked anew by the bank: what the file says of them earns
    nothing, and a difference is said. Those to another bank, or another version of
    it, are left out.

    \b
    Example:
        readerkit quiz import answers.json
    """
    from readerkit.app.quiz_banks import QuizBanks, open_history
    from readerkit.quiz.history_import import add_export

    banks = QuizBanks.at(book)
    here = banks.phases()
    history, data = open_history(), file.read_bytes()
    added = add_export(
        data, str(file), history, lambda n: banks.bank(n) if n in here else None
    )
    _tell_marks(added, file)
    if as_json:
        _say(added)
        return
    also = [
        (added.flags, counted(added.flags, "flag")),
        (added.suspended, f"{added.suspended} suspended"),
    ]
    new = [
        counted(added.quizzes, "quiz", "quizzes"),
        counted(added.answers, "answer"),
        *(text for count, text in also if count),
    ]
    there = f"; {counted(added.already, 'row')} there already" if added.already else ""
    left = f"; {counted(added.left_out, 'row')} left out"
    tell(
        f"added {', '.join(new[:-1])} and {new[-1]}{there}"
        + (left if added.left_out else "")
    )


def _tell_marks(added: Imported, file: Path) -> None:
    """Say on stderr which answers were marked otherwise, and which not at all."""
    told = {"marked anew": added.differing, "left out": added.unmarked}
    for what, rows in told.items():
        for row in rows[:MAX_SHOWN_FAULTS]:
            tell(f"readerkit: {file}: {row}: {what}", err=True)
        if more := rows[MAX_SHOWN_FAULTS:]:
            tell(f"readerkit: {len(more)} more {what}", err=True)


@click.command(short_help="Forget every answer.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def delete(yes: bool, as_json: bool) -> None:
    """Forget every quiz, answer, flag and suspension on this machine.

    \b
    Example:
        readerkit quiz delete --yes
    """
    from readerkit.app.quiz_banks import open_history
    from readerkit.quiz.history_messages import Deleted
    from readerkit.terminal.asking import agree

    if as_json and not yes:
        raise click.UsageError("--json asks nothing: expected --yes beside it")
    history = open_history()
    if not yes:
        answers = counted(len(history.answers()), "answer")
        agree(f"Forget {answers}?", "nothing was forgotten")
    count = history.delete()
    if as_json:
        _say(Deleted(count))
        return
    click.echo(f"forgot {counted(count, 'answer')}")


def _say(message: Struct) -> None:
    from readerkit.terminal.quiz_json import say

    say(message)

"""``readerkit quiz``: questions with keys that cannot rot, marked and explained."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from readerkit.commands.options import (
    FiniteRange,
    WholeRange,
    book_option,
    is_typed,
    json_option,
    shipped_language_option,
)
from readerkit.commands.quiz_export import export
from readerkit.commands.quiz_flags import flag, suspend
from readerkit.commands.quiz_history import delete, import_file, stats, undo
from readerkit.commands.quiz_init import init
from readerkit.commands.quiz_lint import lint
from readerkit.commands.quiz_list import list_questions
from readerkit.commands.quiz_options import filter_options, phase_option
from readerkit.errors import ReaderkitError
from readerkit.terminal.completing import names
from readerkit.terminal.folded import tell
from readerkit.terminal.group import NamingGroup
from readerkit.wording.next_command import typed

if TYPE_CHECKING:
    from readerkit.app.quiz_banks import QuizBanks
    from readerkit.quiz.bank import Bank
    from readerkit.quiz.history import History
    from readerkit.quiz.selection import WantedQuiz
    from readerkit.quiz.session import Session

LEFT = 130
"""The exit code of an exam that was left: neither passed nor failed."""
LARGEST_SEED = 2**63 - 1
"""The history is of SQLite, whose whole numbers end here."""


class _QuizGroup(NamingGroup):
    """A group in which a number is a phase to take the quiz of."""

    def shell_complete(
        self, ctx: click.Context, incomplete: str
    ) -> list[CompletionItem]:
        """Return the phases and the commands that may stand next."""
        phases = names("phases")(ctx, click.Argument(["phase"]), incomplete)
        return [*phases, *super().shell_complete(ctx, incomplete)]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0].isdigit():
            args = ["take", *args]
        elif (
            args
            and args[0] not in self.commands
            and args[0][:1] != "-"
            and not ctx.resilient_parsing
        ):
            raise click.UsageError(_what_to_ask(args, [*self.commands]), ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; whatever ends it is told to programs too, as JSON."""
        for_programs = "--json" in ctx.args  # parsed or not: it may fail before
        try:
            return super().invoke(ctx)
        except (ReaderkitError, click.ClickException, OSError) as error:
            if for_programs:
                from readerkit.quiz.messages import Refusal
                from readerkit.terminal.quiz_json import say

                say(Refusal(_cause(error), final=True))
            raise


def _cause(error: Exception) -> str:
    if isinstance(error, click.ClickException):
        return error.format_message()
    if isinstance(error, OSError) and error.filename:
        return f"cannot write {error.filename}: {error.strerror}"
    return str(error)


def _what_to_ask(args: list[str], commands: list[str]) -> str:
    """Return how to ask about a word that is neither a phase nor a command."""
    import re

    from readerkit.app.quiz_banks import QuizBanks
    from readerkit.wording.meant_name import did_you_mean, near_names

    word = args[0]
    if near := near_names(word, commands):
        hint = did_you_mean(f"'{near[0]}'")
        return f"got '{word}', expected a phase or a command: {hint}"
    meant = take.make_context("take", ["0", *args[1:]], resilient_parsing=True)
    banks = QuizBanks.at(meant.params["book"])
    whole = re.compile(rf"\b{re.escape(word.replace('_', ' '))}", re.IGNORECASE)
    rows = []
    for phase in banks.phases():
        bank = banks.bank(phase)
        topics = [
            topic
            for topic in bank.topics()
            if whole.search(topic.replace("_", " "))
            or any(
                whole.search(bank.objectives[each.objective].title)
                for each in bank.questions.values()
                if each.topic == topic
            )
        ]
        rows += [f"{typed('quiz', str(phase)):32}# {bank.rules.title}"]
        rows += [
            typed("quiz", str(phase), "--topic", topic)
            for topic in topics or bank.topics()
        ]
    listed = "".join(f"\n    {row}" for row in rows)
    return f"got '{word}', expected a phase, which is a number:{listed}"


@click.group(cls=_QuizGroup, short_help="Ask, mark and explain: quiz 35.")
def quiz() -> None:
    """Take the quiz of a phase: readerkit quiz 35.

    A phase is a part of the course that these pages belong to; 35 is distributed
    training, and the only one in the book that ships. Passed at 70%.

    Whatever you answered is kept, and mistakes come back in review.

    \b
    Example:
        readerkit quiz 35
        readerkit quiz 35 --topic pipeline --count 5
        readerkit quiz 35 --exam
        readerkit quiz review
    """


@quiz.command(short_help=f"The quiz of a phase: also as {typed('quiz', '35')}.")
@click.argument("phase", type=WholeRange(0, 999), shell_complete=names("phases"))
@click.option("--exam", is_flag=True, help="No feedback until the end; exit 0 or 1.")
@filter_options
@click.option("--count", type=WholeRange(1, 500), help="How many questions.")
@click.option(
    "--seed",
    type=WholeRange(0, LARGEST_SEED),
    help="The same questions once more.",
)
@click.option(
    "--only",
    multiple=True,
    metavar="ID",
    help="These questions, in order.",
    shell_complete=names("quiz-questions"),
)
@click.option("--due", is_flag=True, help="Only what is due again.")
@click.option("--minutes", type=FiniteRange(0.1, 600), help="A limit of time.")
@click.option(
    "--tries",
    type=WholeRange(1, 3),
    default=2,
    help="For each question; by default 2.",
)
@shipped_language_option("What is asked and said; [en] marks what is not translated.")
@click.option("--resume/--new", default=None, help="Go on where you left, or do not.")
@json_option
@book_option
@click.pass_context
def take(
    context: click.Context,
    /,
    phase: int,
    lang: str,
    resume: bool | None,
    as_json: bool,
    book: Path | None,
    **wanted: Any,
) -> None:
    """Take the quiz of PHASE: one question at a time, marked and explained at once.

    An exam counts for the definition of done where the bank chooses questions and
    seed: with --only, --topic, --count, --seed and the like it is practice.

    \b
    Example:
        readerkit quiz 35
        readerkit quiz 35 --exam
        readerkit quiz 35 --objective goal-bubble --difficulty 3
        readerkit quiz 35 --seed 7 --json
    """
    from readerkit.quiz.selection import WantedQuiz

    asked = WantedQuiz(**wanted)
    if asked.exam and asked.tries > 1 and is_typed(context, "tries"):
        raise click.UsageError("--exam gives one try at each question: no --tries")
    if resume and asked.is_chosen:
        raise click.UsageError("--resume goes on with what was asked: say no more")
    _take(phase, asked, resume, book, as_json=as_json, language=lang)


@quiz.command(short_help="Mistakes again, as new variants, when they are due.")
@phase_option
@click.option("--count", type=WholeRange(1, 500), help="How many at most.")
@shipped_language_option("As there.")
@json_option
@book_option
@click.pass_context
def review(
    context: click.Context,
    phase: int | None,
    count: int | None,
    lang: str,
    as_json: bool,
    book: Path | None,
) -> None:
    """Ask again what is due: mistakes from the next day on, the rest ever later.

    READERKIT_RETENTION sets the share to be remembered (0.9), READERKIT_DAILY how many
    questions a day it asks at most; it says how many are due, and how many wait.

    \b
    Example:
        readerkit quiz review
    """
    from readerkit.app.quiz_banks import QuizBanks

    context.invoke(
        take,
        phase=QuizBanks.at(book).first_phase() if phase is None else phase,
        count=count,
        due=True,
        lang=lang,
        resume=False,
        as_json=as_json,
        book=book,
    )


for command in (
    *(list_questions, lint, stats, undo, flag, suspend),
    *(export, import_file, delete, init),
):
    quiz.add_command(command)


def _take(
    phase: int,
    asked: WantedQuiz,
    resume: bool | None,
    book: Path | None,
    *,
    as_json: bool,
    language: str,
) -> None:
    from readerkit.app.begin_quiz import begin
    from readerkit.app.quiz_banks import QuizBanks, open_history, tell_damage

    banks = QuizBanks.at(book)
    bank, history = banks.bank(phase, language=language), open_history()
    session = None
    if resume or (resume is None and not asked.is_chosen):
        mode = "exam" if asked.exam else ""
        session = _resumed(
            bank, history, resume, mode, as_json=as_json, language=language
        )
    session = session or begin(bank, history, asked)
    tell_damage(history)
    _lead(session, banks, book, as_json=as_json, language=language)


def _resumed(
    bank: Bank,
    history: History,
    resume: bool | None,
    mode: str,
    *,
    as_json: bool,
    language: str,
) -> Session | None:
    """Return the session that was left, if the reader wants to go on with it."""
    from readerkit.app.begin_quiz import now
    from readerkit.quiz.history_rows import timestamp
    from readerkit.quiz.session import Session

    row = history.unfinished(bank.rules.phase, timestamp(now()), mode=mode)
    if row is None:
        if resume:
            what = mode or "quiz"
            raise ReaderkitError(f"no {what} was left unfinished: leave out --resume")
        return None
    try:
        session = Session.resume(bank, history, row, clock=now)
    except ReaderkitError as error:
        if resume:
            raise
        tell(f"readerkit: {error}", err=True)
        return None
    if resume or (not as_json and sys.stdin.isatty() and _wanted(session, language)):
        return session
    return None


def _wanted(session: Session, language: str) -> bool:
    from readerkit.terminal.quiz_resume import tell_kept, wants_to_resume

    wants = wants_to_resume(session, language)
    if wants is None:
        tell_kept(session, language)
        raise click.exceptions.Exit(LEFT if session.is_exam else 0)
    return wants


def _lead(
    session: Session,
    banks: QuizBanks,
    book: Path | None,
    *,
    as_json: bool,
    language: str,
) -> None:
    from readerkit.app.cited_lines import SourceLines

    lines = SourceLines(banks, book)
    if as_json:
        from readerkit.terminal.quiz_json import lead
    else:
        from functools import partial

        from readerkit.terminal import quiz as quiz_terminal

        lead = partial(quiz_terminal.lead, language=language)
    try:
        result = lead(session, lines)
    except (click.Abort, KeyboardInterrupt):
        from readerkit.terminal.quiz_resume import tell_kept

        click.echo(err=True)
        tell_kept(session, language)
        raise
    passed = getattr(result, "passed", None)
    if session.is_exam and not passed:
        raise click.exceptions.Exit(LEFT if passed is None else 1)

"""What the quiz shows on a terminal: its messages in words, and the code behind."""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Mapping

import click
from msgspec import UNSET
from msgspec.structs import replace

from readerkit.app.begin_quiz import IN_SECONDS, PRACTICE_EXAM
from readerkit.app.cited_lines import SourceLines, numbered
from readerkit.claims.proof import Claimable, sentences
from readerkit.model.language import Told
from readerkit.quiz.kinds.short import said_of
from readerkit.quiz.messages import (
    DoneResult,
    Hint,
    MarkedAnswer,
    QuestionLeftOut,
    Remark,
    Score,
    Share,
    Solved,
    Standing,
    TextFinding,
    TryResult,
)
from readerkit.quiz.prompts import (
    ChoicePrompt,
    CitedLines,
    Labelled,
    LocatePrompt,
    MatchPrompt,
    OrderPrompt,
    PredictPrompt,
    Prompt,
    SketchPrompt,
    drawn_strip,
)
from readerkit.render.terminal_safe import visible
from readerkit.terminal.pager import show_paged
from readerkit.terminal.paragraphs import Paragraphs, linked
from readerkit.wording.next_command import typed

MAX_SHOWN_LINES = 8
"""Of the code behind a mistake; the note has all of it."""


class QuizScreen(Paragraphs):
    """Shows messages in the reader's language, and the code that they lead to."""

    def __init__(
        self, lines: SourceLines, language: str, questions: Mapping[str, Claimable]
    ) -> None:
        super().__init__(language)
        self._lines = lines
        self._questions = questions

    def tell_left_out(self, left_out: QuestionLeftOut) -> None:
        """Say which question is not asked, and why."""
        why = {"question": left_out.id, "why": left_out.text}
        self.tell(Told("Left out: {question}. {why}", **why), fg="yellow")

    def show_labelled(self, entries: tuple[Labelled, ...]) -> None:
        """Show what is answered by its labels."""
        for entry in entries:
            self.tell(f"{entry.label}  {entry.text}", indent=2)

    def show_question(self, question: Prompt) -> None:
        """Show a question, and how it is answered."""
        click.echo()
        dots = "●" * question.difficulty + "○" * (3 - question.difficulty)
        head = f"{question.position}/{question.of}  {question.topic}  {dots}"
        clock = (
            () if question.seconds_left is None else (_clock(question.seconds_left),)
        )
        self.tell(head, *clock, fg="cyan")
        self.tell(question.prompt)
        match question:
            case ChoicePrompt(options=entries) | OrderPrompt(items=entries):
                self.show_labelled(entries)
            case MatchPrompt(left=left, right=right):
                for side in (left, right):
                    click.echo()
                    self.show_labelled(side)
            case LocatePrompt():
                self.show_search(question)
            case PredictPrompt(strip=tuple(calls)):
                self.tell(drawn_strip(calls))
            case SketchPrompt(columns=columns):
                row = self.said(Told("Each row"))
                self.tell(f"{row}: {', '.join(columns)}", dim=True)
        self.tell(f"({self.said(question.how)})", dim=True)
        for text in question.hints:
            self.tell(text, fg="magenta")
        self._offer_hint(question.hint_costs)

    def show_hint(self, hint: Hint) -> None:
        """Show a hint, and what the next one costs."""
        self.tell(hint.text, fg="magenta")
        self._offer_hint(hint.next_costs, Told("another hint"))

    def _offer_hint(self, cost: float | None, what: str = Told("a hint")) -> None:
        if cost:
            share = f"{cost:.0%}"
            told = Told(
                "(hint: {what}, for {share} of the points)", what=what, share=share
            )
            self.tell(told, dim=True)

    def show_search(self, question: LocatePrompt) -> None:
        """Show the code to search, a screen at a time where it is longer than one."""
        place = question.search
        self.tell(f"{place.path}:{place.first}-{place.last}", dim=True)
        count = place.last - place.first + 1
        if sys.stdout.isatty() and count + 4 > shutil.get_terminal_size().lines:
            show_paged(self._code(place), language=self.language)
            self.tell(question.prompt)  # the first one has scrolled away
            self.tell(Told("(c shows the code again)"), dim=True)
        else:
            self._show_code(place)

    # --- what it earned ---

    def show_finding(self, finding: TextFinding) -> None:
        """Show which points the machine found, and in which words."""
        for point in finding.points:
            self.tell(said_of(point), indent=2, fg="green" if point.found else None)

    def show_result(self, result: TryResult, *, skipped: bool) -> None:
        """Show what an answer earned."""
        with self.together():
            self._show_earned(result, skipped)

    def _show_earned(self, result: TryResult, skipped: bool) -> None:
        if result.right:
            points = Told("{points} points.", points=_points(result.points))
            one = Told("1 point.")
            self.tell(Told("Right."), one if result.points == 1 else points, fg="green")
        elif skipped and result.points:
            kept = Told(
                "{points} points of before are kept.",
                points=_points(result.points),
            )
            self.tell(kept, dim=True)
        elif not skipped:
            share = Told("{share} of it is right", share=f"{result.credit:.0%}")
            parts = [Told("Wrong" if result.done else "Not yet")]
            parts += [share] if result.credit else []
            self.tell(f"{', '.join(map(self.said, parts))}.", fg="red")
        self._show_remarks(result.remarks)
        if isinstance(result, DoneResult):
            self._explain(result.id, result, result.remarks, with_key=not result.right)

    def _show_remarks(self, remarks: tuple[Remark, ...]) -> None:
        for remark in remarks:
            self.tell(remark.text, indent=2)
            if remark.place:
                self._show_place(remark.place)

    def _explain(
        self,
        question: str,
        told: Solved,
        remarks: tuple[Remark, ...],
        *,
        with_key: bool = True,
    ) -> None:
        label = f"{self.said(Told('Answer'))}  "
        for number, line in enumerate(told.solution.split("\n") if with_key else ()):
            self.tell(f"{' ' * len(label) if number else label}{line}", bold=True)
        self.tell(told.explanation)
        shown = {remark.place for remark in remarks}  # with its lines, just above
        for place in told.links:
            if place not in shown:
                self._show_link(place)
        for work in told.references:
            section = f", {work.section}" if work.section else ""
            words = f"{work.authors} {work.year}, {work.title}{section}"
            self.tell(f"→ {words}. {work.url}", fg="blue", indent=2)
        if sentences(self._questions[question]):
            command = typed("annotate", question, "--claims")
            proof = self.said(Told("what proves it: {command}", command=command))
            self.tell(proof, dim=True, indent=2, wrap=False)

    def _show_place(self, place: CitedLines) -> None:
        """Show the lines that refute an answer, the first few of them."""
        self._show_link(place)
        last = min(place.last, place.first + MAX_SHOWN_LINES - 1)
        self._show_code(replace(place, last=last))
        if place.last > last:
            self.tell("…", indent=4)

    def _show_link(self, place: CitedLines) -> None:
        address = self._lines.address(place)
        shown = click.style(f"→ {visible(str(place))}", fg="blue")
        self.put(f"  {linked(shown, address) if address else shown}")
        if place.note:
            command = typed("annotate", place.note)
            self.tell(command, fg="blue", indent=4, wrap=False)
        if address:
            self.tell(address, dim=True, indent=4, wrap=False)

    def _show_code(self, place: CitedLines) -> None:
        self.put(self._code(place), nl=False)

    def _code(self, place: CitedLines) -> str:
        """Return lines of code: coloured and folded on a terminal, plain in a pipe."""
        if not sys.stdout.isatty():
            lines = numbered(self._lines.lines(place) or [], place.first)
            return "".join(f"    {visible(line)}\n" for line in lines)
        from readerkit.model.anchor import Span
        from readerkit.render.note_view import console
        from readerkit.render.terminal_code import indented_code

        source = self._lines.source(place)
        if source is None:
            return ""
        screen = console()
        span = Span(place.path, place.first, place.last)
        with screen.capture() as written:
            screen.print(indented_code(source, span, screen.width, 4))
        return written.get()

    # --- the end ---

    def show_outcome(self, outcome: Standing) -> None:
        """Show the result: score, topics, what to read; nothing where it is hidden."""
        if not isinstance(outcome, Score):
            click.echo()
            return
        for answer in outcome.marked or ():
            self._show_marked(answer)
        click.echo()
        if outcome.choice_corrected is not None:
            luck = (
                "Choice questions without luck, (R - W/(k-1))/N: {share} of {questions}"
            )
            share, among = f"{outcome.choice_corrected:.0%}", outcome.choice_questions
            self.tell(Told(luck, share=share, questions=among))
        if (free := outcome.free_text) is not None:
            words = (
                "In your own words: {points} of {questions}, by the points that were "
                "found in them; {share} of what could be had."
            )
            share = f"{free.questions / outcome.questions:.0%}"
            told = {"questions": free.questions, "share": share}
            self.tell(Told(words, points=_points(free.points), **told))
        for topic, each in outcome.topics.items():
            row = Told(
                "{points} of {questions}   {low} to {high}",
                points=_points(each.points),
                questions=each.questions,
                **_ends(each),
            )
            self.tell(f"{topic:20}", row, indent=2)
        self._show_objectives(outcome)
        if outcome.read_next:
            self.tell(Told("Read next:"))
        for note in outcome.read_next:
            self.tell(note.title, indent=2)
            self.tell(note.command, fg="blue", indent=4, wrap=False)
        review = typed("quiz", "review")
        again = Told("Mistakes come back from tomorrow: {review}", review=review)
        self.tell(again, dim=True)
        click.echo()
        # Last, so that it still stands there below all the rest.
        self.tell(_verdict(outcome, self.counted(outcome.questions)), bold=True)
        if outcome.mode == "exam" and not outcome.official:
            self.tell(PRACTICE_EXAM, fg="yellow")

    def _show_objectives(self, outcome: Score) -> None:
        """Show what was lost by objective: wholly wrong ones first, with a command."""
        for name in outcome.missed:
            each = outcome.objectives[name]
            nothing = Told(
                "Nothing right of {questions}: {objective}",
                questions=self.counted(each.questions),
                objective=each.title,
            )
            self.tell(nothing, fg="red")
            self.tell(each.command, fg="blue", indent=4, wrap=False)
        for name, each in outcome.objectives.items():
            if name not in outcome.missed and each.points < each.questions:
                share = f"{each.points:g}/{each.questions} "
                self.tell(share, each.title, indent=2)

    def _show_marked(self, answer: MarkedAnswer) -> None:
        click.echo()
        sign, colour = ("right", "green") if answer.right else ("wrong", "red")
        sign = self.said(Told(sign))
        self.tell(f"{answer.position + 1}  {sign}  {answer.question}", fg=colour)
        if not answer.right:
            self.tell(answer.prompt)
            self.tell(f"{self.said(Told('Yours')):8}{answer.answer or '-'}")
            self._show_remarks(answer.remarks)
            self._explain(answer.question, answer, answer.remarks)


def _verdict(outcome: Score, questions: str) -> Told:
    share = f"{outcome.score:.0%}"
    told = {"share": share, "questions": questions, **_ends(outcome)}
    if outcome.passed is UNSET:
        return Told(
            "{done} of {of} answered: so far {share} of {questions} "
            "(95% interval {low} to {high}). Part of a quiz has no verdict.",
            done=outcome.answered,
            of=outcome.of,
            **told,
        )
    verdict = Told("passed" if outcome.passed else "not passed")
    return Told(
        "Score {share} of {questions} (95% interval {low} to {high}): {verdict}; "
        "{mark} passes",
        verdict=verdict,
        mark=f"{outcome.pass_mark:.0%}",
        **told,
    )


def _clock(seconds: float) -> Told:
    if seconds <= IN_SECONDS:
        return Told(" {seconds} s left", seconds=math.ceil(seconds))
    return Told(" {minutes} min left", minutes=math.ceil(seconds / 60))


def _ends(share: Share | Score) -> dict[str, str]:
    """Return the ends of an interval, in words."""
    low, high = (f"{end:.0%}" for end in share.interval)
    return {"low": low, "high": high}


def _points(number: float) -> str:
    return f"{round(number, 2):g}"

"""A quiz that was left: whether to go on with it, and how much of it is kept."""

from __future__ import annotations

from readerkit.app.interface_translation import say_in
from readerkit.app.quiz_banks import kept
from readerkit.model.language import said
from readerkit.quiz.session import Session
from readerkit.terminal.asking import confirm
from readerkit.terminal.folded import tell


def wants_to_resume(session: Session, language: str) -> bool | None:
    """Ask whether a person goes on with a quiz; None: they leave."""
    say, row = say_in(language), session.row
    asked = say("Go on with the quiz of {begun} UTC ({done} of {of} answered)?")
    if session.is_exam:
        asked = say("Go on with the exam of {begun} UTC ({done} of {of} answered)?")
    begun = row.started[:16].replace("T", " ")
    counts = {"done": session.answered, "of": len(row.questions)}
    return confirm(asked.format(begun=begun, **counts), default=True, say=say)


def tell_kept(session: Session, language: str) -> None:
    """Say on stderr how much is kept, and what goes on with it."""
    tell(said(kept(session), say_in(language)), err=True)

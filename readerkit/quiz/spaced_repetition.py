"""When a question should come back: FSRS, replayed from the history of answers.

No state of the scheduler is kept: the answers are the state. What a first try earned
is the rating, so a mistake is due the next day and a right answer later each time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from fsrs import Card, Rating, Scheduler

from readerkit.quiz.history_messages import DueQuestion
from readerkit.quiz.history_rows import AnswerRow, timestamp
from readerkit.quiz.report import tries
from readerkit.quiz.variant import WHOLE


@dataclass(frozen=True, slots=True)
class Due:
    """When a question is due again."""

    question: str
    moment: datetime
    missed: bool
    """Whether the last outcome was a mistake."""

    def told(self, now: datetime) -> DueQuestion:
        """Return it as a message."""
        due = self.moment.isoformat(timespec="seconds")
        return DueQuestion(self.question, due, self.moment <= now, self.missed)


def due_questions(
    answers: Iterable[AnswerRow], moment: datetime, *, retention: float = 0.9
) -> list[Due]:
    """Return when each answered question is due, the earliest first, mistakes before.

    Fuzz is off and there are no steps within a day, so the same answers always give
    the same dates, in UTC. ``retention`` is the share that is to be remembered when
    a question comes back: a higher one brings it back sooner. What is dated after
    ``moment``, by a clock that was wrong, stands before all else, and where there is
    nothing else the question is due: nobody knows for how long it was not asked.
    """
    scheduler = Scheduler(
        desired_retention=retention,
        enable_fuzzing=False,
        learning_steps=(),
        relearning_steps=(),
    )
    cards: dict[str, Card] = {}
    missed: dict[str, bool] = {}
    latest: dict[str, datetime] = {}
    now = timestamp(moment)
    for rows in sorted(
        tries(answers), key=lambda rows: (rows[0].answered <= now, rows[0].answered)
    ):
        name = rows[0].question
        card = cards.get(name) or Card(card_id=len(cards) + 1)
        latest[name] = datetime.fromisoformat(rows[0].answered).astimezone(UTC)
        rating = _rating(rows)
        cards[name], _ = scheduler.review_card(card, rating, latest[name])
        missed[name] = rating is Rating.Again
    found = [
        Due(
            name,
            min(moment, card.due) if latest[name] > moment else card.due,
            missed[name],
        )
        for name, card in cards.items()
    ]
    return sorted(found, key=lambda due: (due.moment, not due.missed, due.question))


def _rating(rows: list[AnswerRow]) -> Rating:
    if rows[0].credit >= WHOLE and not rows[0].hinted:
        return Rating.Good
    # Right in the end or with a hint, or more than half at once: hard, not lost.
    later = any(row.credit >= WHOLE for row in rows)
    return Rating.Hard if later or rows[0].credit > 0.5 else Rating.Again

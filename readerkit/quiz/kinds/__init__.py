"""The types of questions, one file each (or a few that are alike)."""

from __future__ import annotations

from typing import Any

from readerkit.content.kind import Kind
from readerkit.quiz.kinds.choice import Multiple, Single
from readerkit.quiz.kinds.fill import Fill
from readerkit.quiz.kinds.locate import Locate
from readerkit.quiz.kinds.numeric import Numeric
from readerkit.quiz.kinds.predict import Predict
from readerkit.quiz.kinds.question import PlaceRef, Question
from readerkit.quiz.kinds.sequence import Match, Order
from readerkit.quiz.kinds.short import Short
from readerkit.quiz.kinds.sketch import Sketch

__all__ = ["QUESTIONS", "PlaceRef", "Question"]

_ANY: Any = (
    Single
    | Multiple
    | Numeric
    | Order
    | Match
    | Fill
    | Locate
    | Predict
    | Sketch
    | Short
)

QUESTIONS: Kind[Question] = Kind("questions", _ANY)

"""The types of questions, one file each (or a few that are alike)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from readerkit.quiz.kinds.base import Asked, Body, Grade, PlaceRef, Remark
from readerkit.quiz.kinds.choice import Choice
from readerkit.quiz.kinds.locate import Locate
from readerkit.quiz.kinds.numeric import Numeric
from readerkit.quiz.kinds.predict import Predict
from readerkit.quiz.kinds.sequence import Match, Order
from readerkit.quiz.kinds.sketch import Sketch
from readerkit.quiz.kinds.words import Fill, Short

__all__ = ["PARSERS", "Asked", "Body", "Grade", "PlaceRef", "Remark"]

PARSERS: Mapping[str, Callable[[Mapping[str, Any]], Body]] = {
    "single": Choice.parse,
    "multiple": Choice.parse,
    "numeric": Numeric.parse,
    "order": Order.parse,
    "match": Match.parse,
    "fill": Fill.parse,
    "locate": Locate.parse,
    "predict": Predict.parse,
    "sketch": Sketch.parse,
    "short": Short.parse,
}
"""How the own part of a question of each type is read."""

"""The page of a run that is watched: its table, as the run left it last."""

from __future__ import annotations

import re
from dataclasses import dataclass

from readerkit.app.watched_run import WatchedRun, read_watched_run
from readerkit.model.language import Say
from readerkit.render.html.words import Text, Words
from readerkit.site.build import BuildCache

PAGE = "-/run"
PARTS = (
    "the model: the sum of estimate step, with rates measured on this "
    "machine before the run",
    "as gloo makes all-reduces of reduce-scatters, and sends twice as much for them",
    "of the step with nothing under way: a thread of the backend begins, or Python "
    "wakes up, late",
    "bytes a call besides the tensors",
    "in a training step alone",
    "a call",
    "by rank 0",
    "all ranks beside the model",
    "beside the model",
    "beside the estimate",
    "of states and activations",
    "of a product alone",
    "of states alone",
    "by the schedule",
    "by formula",
    "computing",
    "exposed",
    "resident",
    "step",
    "waiting",
    ", bubble",
    ", with",
    ", for",
    "times",
    "sent",
    "peak",
    "at",
)
"""Of the sentence that a run leaves for each rank, between numbers and units."""
_PART = re.compile(rf"(?<!\w)(?:{'|'.join(PARTS)})(?!\w)")


@dataclass(frozen=True, slots=True)
class RunPage:
    """What the page shows."""

    title: Text
    run: WatchedRun | None
    words: Words

    def beside(self, line: str) -> Text:
        """Return what the estimates say of a rank, in both languages."""
        return self.words.text(lambda say: beside(line, say))


def beside(line: str, say: Say) -> str:
    """Return what the estimates say of a rank in a language."""
    return _PART.sub(lambda part: say(part[0]), line)


def run_html(template: str, build_cache: BuildCache) -> str:
    """Return the page, or what of it changes while a run goes on."""
    templates, model = build_cache.templates, build_cache.model
    assert templates is not None and model is not None  # built before it is served
    title = model.words.text(lambda say: say("A run that is watched"))
    page = RunPage(title, read_watched_run(), model.words)
    return templates.render(template, PAGE, page, site=build_cache.frame)

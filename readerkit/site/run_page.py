"""The page of a run that is watched: its table, as the run left it last."""

from __future__ import annotations

from dataclasses import dataclass

from readerkit.app.watched_run import WatchedRun, read_watched_run
from readerkit.render.html.words import Text
from readerkit.site.build import BuildCache

PAGE = "-/run"


@dataclass(frozen=True, slots=True)
class RunPage:
    """What the page shows."""

    title: Text
    run: WatchedRun | None


def run_html(template: str, build_cache: BuildCache) -> str:
    """Return the page, or what of it changes while a run goes on."""
    templates, model = build_cache.templates, build_cache.model
    assert templates is not None and model is not None  # built before it is served
    title = model.words.text(lambda say: say("A run that is watched"))
    page = RunPage(title, read_watched_run())
    return templates.render(template, PAGE, page, site=build_cache.frame)

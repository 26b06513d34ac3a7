"""The names there are, kind by kind: what the shell completes, and what lists show."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from readerkit.app.folders import PACKAGE, shipped_book
from readerkit.app.mini_names import ALIASES, SAYS
from readerkit.model.language import LANGUAGES

Given = Mapping[str, Any]
"""What stands on the line already, by parameter."""
Names = Iterator[tuple[str, str]]
"""Names, and a few words on each."""
Find = Callable[[Path | None, Given], Names]


def upstreams(book: Path | None, given: Given) -> Names:
    """Yield the upstreams of a book."""
    for each in _open(book).upstreams.values():
        yield each.name, each.title


def notes(book: Path | None, given: Given) -> Names:
    """Yield the notes of a book, those on an upstream where one stands on the line."""
    on = given.get("upstream")
    for each in _open(book).annotations.values():
        if on in (None, each.upstream):
            yield each.id, each.title


def concepts(book: Path | None, given: Given) -> Names:
    """Yield the concepts of a book."""
    for each in _open(book).concepts.values():
        yield each.id, each.title


def conditions(book: Path | None, given: Given) -> Names:
    """Yield what notes of a book presume."""
    for each in _open(book).conditions.values():
        yield each.id, each.title


def note_topics(book: Path | None, given: Given) -> Names:
    """Yield the topics that notes are written under."""
    for topic in dict.fromkeys(a.topic for a in _open(book).annotations.values()):
        yield topic, "topic"


def annotate(book: Path | None, given: Given) -> Names:
    """Yield all that stands for notes in the first place of ``annotate``."""
    opened = _open(book)
    for upstream in opened.upstreams.values():
        yield upstream.name, upstream.title
    for note in opened.annotations.values():
        yield note.id, note.title
    words = {a.topic: "topic" for a in opened.annotations.values()} | {
        name: "mini" for name in (*SAYS, *ALIASES)
    }
    for word, says in words.items():
        if word not in opened.upstreams and word not in opened.annotations:
            yield word, says


def minis(book: Path | None, given: Given) -> Names:
    """Yield the minis, and what they are called for short."""
    yield from SAYS.items()
    yield from ALIASES.items()


def compared(book: Path | None, given: Given) -> Names:
    """Yield the minis that are held against an upstream."""
    for mini in dict.fromkeys(c.mini for c in _open(book).comparisons.values()):
        yield mini, SAYS.get(mini, "")


def beside(book: Path | None, given: Given) -> Names:
    """Yield what the mini on the line is held against, where that is asked."""
    typed = given.get("options") or ()
    if typed and typed[-1] == "--upstream":
        mini = ALIASES.get(str(given.get("mini")), given.get("mini"))
        for each in _open(book).comparisons.values():
            if each.mini == mini:
                yield each.upstream, each.title


def faulty(book: Path | None, given: Given) -> Names:
    """Yield minis that have faults, or the faults of the mini on the line."""
    known = list(_faults())
    words = given.get("arguments") or ()
    if not words:
        for mini in dict.fromkeys(mini for mini, _, _ in known):
            yield mini, SAYS.get(mini, "")
    for mini, name, title in known:
        if words and mini == ALIASES.get(words[0], words[0]):
            yield name, title


def rebuilt(book: Path | None, given: Given) -> Names:
    """Yield the minis with sections to rebuild; of a mini on the line, its sections."""
    from readerkit.app.rebuilding import read_exercises

    mini = given.get("mini")
    for each in read_exercises():
        if mini is None:
            yield each.mini, SAYS.get(each.mini, "")
        elif each.mini == ALIASES.get(mini, mini):
            yield each.name, each.title


def _faults() -> Iterator[tuple[str, str, str]]:
    """Yield mini, name and title of each fault."""
    from readerkit.content.strict_yaml import parse_yaml

    path = PACKAGE.parent / "mini_impls" / "faults" / "faults.yaml"
    for fault in parse_yaml(path.read_bytes(), str(path)).value:
        yield fault["mini"], fault["name"], fault["title"]


def proved(book: Path | None, given: Given) -> Names:
    """Yield what has a sentence with an experiment."""
    from readerkit.app.check_claims import entries_of
    from readerkit.app.library import open_library
    from readerkit.claims.proof import sentences

    for entry in entries_of(open_library(book, quiet=True)):
        if any(each.claim.experiment for each in sentences(entry)):
            yield entry.id, entry.title


def phases(book: Path | None, given: Given) -> Names:
    """Yield the phases that have a quiz."""
    from readerkit.app.quiz_banks import QuizBanks

    for phase in QuizBanks.at(book).phases():
        yield str(phase), "quiz"


def quiz_topics(book: Path | None, given: Given) -> Names:
    """Yield the topics of the quiz on the line, or of all."""
    from readerkit.quiz.bank import BANK_FILE

    root = (book or shipped_book()) / "quizzes"
    for path in sorted(root.glob(f"{given.get('phase') or '*'}/*.yaml")):
        if path.name != BANK_FILE and "." not in path.stem:
            yield path.stem, "topic"


def quiz_objectives(book: Path | None, given: Given) -> Names:
    """Yield the objectives of the quiz on the line, or of all."""
    from readerkit.app.quiz_banks import QuizBanks

    banks = QuizBanks.at(book)
    for phase in banks.phases():
        if given.get("phase") in (None, phase):
            for name, objective in banks.bank(phase).objectives.items():
                yield name, objective.title


def progress_lines(book: Path | None, given: Given) -> Names:
    """Yield the lines of the phase on the line, which ``progress`` may waive."""
    from readerkit.labs import PHASE
    from readerkit.labs.progress import NAMES

    if given.get("phase") in (None, PHASE):
        yield from ((name, "line") for name in NAMES)
    else:
        yield "quiz", "line"
        yield from quiz_objectives(book, given)


def quiz_questions(book: Path | None, given: Given) -> Names:
    """Yield the questions of the quiz on the line, or of all."""
    from readerkit.app.quiz_banks import QuizBanks

    banks = QuizBanks.at(book)
    for phase in banks.phases():
        if given.get("phase") in (None, phase):
            for question in banks.bank(phase).questions.values():
                yield question.id, question.type


def quiz_kinds(book: Path | None, given: Given) -> Names:
    """Yield the kinds of questions that the quiz on the line has, or all quizzes."""
    for kind in dict.fromkeys(says for _, says in quiz_questions(book, given)):
        yield kind, "kind"


def noted_files(book: Path | None, given: Given) -> Names:
    """Yield the files that notes are on."""
    for file in dict.fromkeys(a.anchor.file for a in _open(book).annotations.values()):
        yield file, "file"


def revisions(book: Path | None, given: Given) -> Names:
    """Yield branches and tags of the repository that a book of it stands in."""
    from readerkit.upstreams.book_repository import refs_of, top_of

    upstreams = _open(book).upstreams
    on = given.get("upstream") or next(iter(upstreams))
    if upstreams[on].is_living:
        for ref in refs_of(top_of(book or shipped_book())):
            yield ref, "revision"


def sources(book: Path | None, given: Given) -> Names:
    """Yield the kinds of sources that files are fetched from."""
    yield from (("git", "the repository"), ("installed", "a package installed here"))
    yield "package", "a release of the package index"


def priced_gpus(book: Path | None, given: Given) -> Names:
    """Yield what the price file has a price for."""
    yield from {price.gpu: price.vendor for price in _prices()}.items()


def vendors(book: Path | None, given: Given) -> Names:
    """Yield whose machines the price file has."""
    yield from ((name, "vendor") for name in dict.fromkeys(p.vendor for p in _prices()))


def languages(book: Path | None, given: Given) -> Names:
    """Yield the languages that notes may be in."""
    yield from ((name, "") for name in LANGUAGES)


def _prices() -> Any:
    from readerkit.app.catalog import load_prices
    from readerkit.app.own_rows import OwnRows

    return load_prices(None, OwnRows())


def _words(module: str, *constants: str) -> Find:
    """Return what yields the words of an estimate, each list of them a constant."""

    def find(book: Path | None, given: Given) -> Names:
        of = import_module(f"readerkit.estimate.{module}")
        for constant in constants:
            yield from ((name, "") for name in getattr(of, constant))

    return find


def _catalog(kind: str, says: str) -> Find:
    """Return what yields the entries of the catalog that estimates know."""

    def find(book: Path | None, given: Given) -> Names:
        from readerkit.app.catalog import rows
        from readerkit.app.own_rows import OwnRows

        for name in rows(kind, OwnRows()):
            yield name, says

    return find


def labs(book: Path | None, given: Given) -> Names:
    """Yield the labs."""
    from readerkit.labs.lab import LABS

    for lab in LABS.values():
        yield lab.id, lab.title


def paths(book: Path | None, given: Given) -> Names:
    """Yield the reading paths of a book."""
    from readerkit.app.library import open_library
    from readerkit.app.read_paths import read_paths

    for path in read_paths(open_library(book, quiet=True)):
        yield path.id, path.title
        for stop in path.stops:
            yield stop.id, stop.title


def tours(book: Path | None, given: Given) -> Names:
    """Yield the tours of a book."""
    for tour in _open(book).tours.values():
        yield tour.id, tour.title


def _open(book: Path | None) -> Any:
    from readerkit.app.library import open_library

    return open_library(book, quiet=True).book


_BY_NAME = (
    *(annotate, upstreams, notes, concepts, minis, compared, beside, faulty),
    *(proved, phases, labs, paths, tours, rebuilt, revisions, sources, vendors),
    *(languages,),
)
KINDS: dict[str, Find] = {
    **{find.__name__: find for find in _BY_NAME},
    "quiz-topics": quiz_topics,
    "quiz-objectives": quiz_objectives,
    "quiz-questions": quiz_questions,
    "quiz-kinds": quiz_kinds,
    "progress-lines": progress_lines,
    "noted-files": noted_files,
    "priced-gpus": priced_gpus,
    "note-topics": note_topics,
    "models": _catalog("models", "model"),
    "gpus": _catalog("gpus", "GPU"),
    "clusters": _catalog("clusters", "cluster"),
    "runs": _catalog("runs", "published run"),
    "algorithm": _words("collectives", "ALGORITHMS"),
    "attention": _words("flops", "ATTENTION"),
    "baseline": _words("compression", "BASELINES"),
    "convention": _words("reports", "CONVENTIONS"),
    "cp-kind": _words("layout", "CP_KINDS"),
    "cpu": _words("nccl", "OVERHEAD_US"),
    "expert-weights": _words("states", "WEIGHTS"),
    "link": _words("nccl", "LINKS"),
    "norm": _words("shape", "NORMS"),
    "offload": _words("states", "OFFLOAD"),
    "operation": _words("nccl", "RINGS"),
    "operations": _words("collectives", "OPERATIONS"),
    "precision": _words("states", "PRECISIONS"),
    "recompute": _words("activations", "RECOMPUTE", "MODULES"),
    "recompute-whole": _words("activations", "RECOMPUTE"),
    "schedule": _words("schedules", "SOURCES"),
    "weights": _words("states", "WEIGHTS"),
}
"""What a parameter may ask to be completed."""

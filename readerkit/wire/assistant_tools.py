"""What an assistant may ask of a book: every answer is bounded, and names its licence.

Nothing here writes, fetches, runs upstream code or shows the key of a question.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from readerkit.anchors import Span, resolve
from readerkit.app.cited_lines import SourceLines
from readerkit.app.library import Library
from readerkit.app.open_ground import open_ground
from readerkit.app.quiz_banks import QuizBanks, refuse_in_exam
from readerkit.app.quoted_rights import licence_said
from readerkit.app.records import read_evidence
from readerkit.claims.check_dispatch import hold
from readerkit.claims.checks_in_words import say_check
from readerkit.claims.proof import sentences
from readerkit.content.annotations import TEXT_FIELDS, Annotation
from readerkit.content.resolved_notes import Sources, resolve_notes
from readerkit.errors import ReaderkitError
from readerkit.evidence.conclusion import Conclusion, say_conclusion
from readerkit.model.anchor import Anchor
from readerkit.model.freshness import tell
from readerkit.quiz.messages import encode
from readerkit.quiz.prompts import LocatePrompt
from readerkit.system.children import python
from readerkit.upstreams import Upstream
from readerkit.wire.note_text import MAX_CHARACTERS, bounded
from readerkit.wire.open_book import OpenBook
from readerkit.wording.meant_name import choose
from readerkit.wording.next_command import typed

MAX_FOUND = 50
"""Of a list, whatever was asked for."""
MAX_LINES = 80
MAX_COLUMNS = 300
MAX_ANSWER = 40_000
"""Characters of what another program printed."""
ESTIMATE_S = 60
# fmt: off
Estimate = Literal[
    "bubble", "buckets", "checkpoint", "comm", "flops", "largest", "layer", "lint",
    "list", "memory", "nccl", "plan", "step",
]
# fmt: on
Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class AssistantTools:
    """The questions, each a method; its docstring is what the assistant reads."""

    open: OpenBook

    def find_notes(
        self,
        text: str = "",
        concept: str = "",
        upstream: str = "",
        file: str = "",
        limit: int = 20,
    ) -> Answer:
        """Find notes on the pinned source: by words they say, concept, upstream, file.

        Each comes with its lines; read_note gives one whole.
        """
        library, words = self._library(), text.casefold().split()
        book = library.book
        names = [choose("upstream", upstream, book.upstreams)] if upstream else []
        rows = []
        for note in book.annotations.values():
            said = " ".join([note.id, note.title, *note.texts.values()]).casefold()
            if (
                all(word in said for word in words)
                and (not concept or concept in note.concepts)
                and note.upstream in (names or book.upstreams)
                and file in note.anchor.file
            ):
                rows.append(note)
        shown = rows[: _at_most(limit)]
        return {
            "notes": [self._row(library, note) for note in shown],
            "more": len(rows) - len(shown),
            "concepts": sorted({c for note in rows for c in note.concepts})[:MAX_FOUND],
        }

    def read_note(self, id: str) -> Answer:
        """Read a note: its lines, what it says, what it cites, and what proves it."""
        library = self._library()
        book = library.book
        note = book.annotations[choose("note", id, book.annotations)]
        upstream = book.upstreams[note.upstream]
        sources = library.sources(upstream)
        [found] = resolve_notes(book, sources, [note])
        ground = open_ground(library)
        works = [(c, book.references[c.key]) for c in note.references]
        claims = sentences(note)
        return {
            "id": note.id,
            "kind": note.kind,
            "title": note.title,
            **{
                name: bounded(text, MAX_CHARACTERS)
                for name in TEXT_FIELDS
                if (text := getattr(note, name))
            },
            **_place(library, sources, found.span),
            "symbol": found.symbol,
            "state": found.state,
            "concepts": list(note.concepts),
            "holds_where": book.conditions_of(note, "en"),
            "sources": [f"{w.title} ({w.year}) {c.section} {w.url}" for c, w in works],
            "claims": [
                {
                    "says": each.claim.says,
                    "check": say_check(each.claim),
                    "state": hold(each.claim, ground).state,
                }
                for each in claims[:MAX_FOUND]
            ],
            "minis": list(found.minis),
        }

    def search_code(
        self, text: str, upstream: str, file: str = "", limit: int = 20
    ) -> Answer:
        """Find a text in the pinned files of an upstream, as it stands, by line.

        Case counts, and no pattern is read; file narrows to paths that hold it.
        """
        if not text.strip():
            raise ReaderkitError("text: got nothing to look for, expected some code")
        library = self._library()
        pinned = library.book.upstreams
        chosen = pinned[choose("upstream", upstream, pinned)]
        sources, found, count = library.sources(chosen), list[Answer](), 0
        wanted = text.encode()
        for path in sorted(p for p in sources.paths if file in p):
            data = sources.read(path)
            if wanted not in data:
                continue
            for number, row in enumerate(
                data.decode("utf-8", "replace").split("\n"), 1
            ):
                if text in row:
                    count += 1
                    if len(found) < _at_most(limit):
                        line = row.strip()[:MAX_COLUMNS]
                        found.append({"path": path, "line": number, "code": line})
        return {**_rights(library, chosen), "found": found, "more": count - len(found)}

    def resolve_anchor(
        self,
        file: str,
        symbol: str = "",
        code: str = "",
        start: str = "",
        stop: str = "",
        nth: int = 0,
    ) -> Answer:
        """Say which lines an anchor names: a symbol, a pattern, or from one to another.

        In a pattern ... stands for anything; it must name one place, else what it
        could mean is told.
        """
        library = self._library()
        given = {"symbol": symbol, "code": code, "from": start, "to": stop, "nth": nth}
        plain = {"file": file, **{key: each for key, each in given.items() if each}}
        anchor = Anchor.parse(plain)
        home = library.book.home_among(library.book.upstreams, anchor.file)
        if not home:
            names = ", ".join(library.book.upstreams)
            raise ReaderkitError(
                f"no upstream includes '{file}', expected one of {names}"
            )
        sources = library.sources(library.book.upstreams[home])
        span = resolve(anchor, sources.file(anchor.file))
        return {"anchor": plain, **_place(library, sources, span)}

    def compare(self, comparison: str = "") -> Answer:
        """Say what a mini did beside its upstream, by the record of a run; or list all.

        Records were made before, on the machine that each names; nothing is run.
        """
        library = self._library()
        evidence = read_evidence(library)
        if not comparison:
            rows = [
                {
                    "comparison": name,
                    "agrees": each.record.agrees,
                    "stale": bool(each.stale),
                }
                for name, each in evidence.items()
            ]
            return {"records": rows[:MAX_FOUND]}
        name = choose("comparison", comparison, evidence)
        record = evidence[name].record
        return {
            "comparison": name,
            "mini": record.mini,
            "upstream": record.upstream,
            "made": record.made,
            "stale": tell(evidence[name].stale),
            "ranks": record.world_size,
            "backend": record.backend,
            "pins": dict(record.pins),
            "agrees": record.agrees,
            "conclusion": list(say_conclusion(Conclusion.of(record))),
            "losses": {
                side: [list(rank[:20]) for rank in ranks][:8]
                for side, ranks in record.losses.items()
            },
            "again": record.command,
        }

    def estimate(self, what: Estimate, options: list[str]) -> Answer:
        """Compute memory, traffic, bubble, FLOPs or a plan, with every formula named.

        The options are those of `readerkit estimate WHAT --help`, such as
        ["--model", "llama-2-7b", "--dp", "8", "--zero", "3"]; list names what there is.
        """
        for each in options:
            if each.startswith(("--catalog", "--book")) or "/" in each or "\\" in each:
                raise ReaderkitError(f"options: got '{each}': no file is read for this")
        command = python("-m", "readerkit", "estimate", what, *options)
        if "--help" not in options:
            command.append("--json")
        try:
            done = subprocess.run(
                command, capture_output=True, timeout=ESTIMATE_S, check=False
            )
        except subprocess.TimeoutExpired:
            raise ReaderkitError(f"not done in {ESTIMATE_S} s: ask for less") from None
        printed = done.stdout.decode("utf-8", "replace")
        if done.returncode not in (0, 1) or not printed:
            raise ReaderkitError(done.stderr.decode("utf-8", "replace").strip())
        if "--help" in options or len(printed) > MAX_ANSWER:
            return {"printed": bounded(printed, MAX_ANSWER)}
        return {"result": json.loads(printed)}

    def ask_question(self, topic: str = "", id: str = "", seed: int = 0) -> Answer:
        """Ask a question of the quiz, without its key: for a person to answer.

        Without an id, the next of a topic that the seed names. It is marked by
        `readerkit quiz PHASE --only ID`, and by nothing here.
        """
        library = self._library()
        banks = QuizBanks.at(library.root)
        phase = banks.first_phase()
        refuse_in_exam("a question to an assistant", phase=phase)
        bank = banks.bank(phase).shared()
        topics = sorted({each.topic for each in bank.questions.values()})
        if topic and topic not in topics:
            raise ReaderkitError(f"topic: got '{topic}', expected one of {topics}")
        among = [q for q in bank.questions.values() if topic in ("", q.topic)]
        if id:
            name = choose("question", id, bank.questions)
        else:
            name = among[seed % len(among)].id
        prompt = bank.variant(name, seed).prompt
        plain = json.loads(encode(prompt))
        if isinstance(prompt, LocatePrompt):
            rows = SourceLines(banks, library.root).lines(prompt.search)
            plain["search"]["lines"] = [row[:MAX_COLUMNS] for row in rows or ()]
        again = typed("quiz", str(phase), "--only", name)
        return {"question": plain, "topics": topics, "to_answer": again}

    def _library(self) -> Library:
        return self.open.library()

    def _row(self, library: Library, note: Annotation) -> Answer:
        upstream = library.book.upstreams[note.upstream]
        lock = library.book.locks.get(upstream.name)
        known = lock.anchors.get(note.id) if lock else None
        row = {"id": note.id, "kind": note.kind, "title": note.title}
        row |= {"upstream": upstream.name, "file": note.anchor.file}
        if known:
            row |= {"lines": f"{known.span}", "link": upstream.permalink(known.span)}
        return row


def _at_most(limit: int) -> int:
    return min(max(limit, 1), MAX_FOUND)


def _rights(library: Library, upstream: Upstream) -> Answer:
    """Return whose source is quoted, at which commit, under which terms."""
    said = licence_said(library, upstream)
    return {"upstream": upstream.name, "pin": upstream.pin, "licence": said}


def _place(library: Library, sources: Sources, span: Span) -> Answer:
    """Return lines with their numbers, no more than anyone reads."""
    found = {**_rights(library, sources.upstream), "path": span.path}
    found |= {"first": span.first, "last": span.last}
    if link := sources.upstream.permalink(span):
        found["link"] = link
    if sources.is_absent:
        return {**found, "code": [], "why": str(sources.upstream.not_fetched)}
    source, last = sources.file(span.path), min(span.last, span.first + MAX_LINES - 1)
    numbers = range(span.first, last + 1)
    found["code"] = [f"{n} {source.line(n)[:MAX_COLUMNS]}" for n in numbers]
    if span.last > last:
        found["lines_left_out"] = span.last - last
    return found


def tools_of(folder: Path | None) -> AssistantTools:
    """Return the tools on a book."""
    return AssistantTools(OpenBook(folder))

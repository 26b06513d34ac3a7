"""The server for assistants, asked by the protocol's own client over its stdio."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.event_loops import run_apart
from tests.helpers import (
    ANNOTATIONS,
    ROOT,
    make_repository,
    run_process,
    write_files,
)
from tests.readerkit.commands.test_init import APP
from tests.terminals import WAIT_S

# The package takes a second to import: only a process that asks a server does.
WITHOUT = find_spec("mcp") is None
pytestmark = [
    pytest.mark.sampled,
    pytest.mark.skipif(WITHOUT, reason="pip install 'readerkit-distributed[mcp]'"),
]

CLAIMED = ANNOTATIONS.replace(
    "  cost: A gather later.\n",
    "  cost: A gather later.\n"
    "  claims:\n"
    "    - {says: One switch picks it, stands: {file: lib/linear.py, "
    'symbol: Linear.forward, code: "if self.sequence_parallel: ..."}}\n',
)
MIT = """The MIT License

Copyright (c) 2024 Ada Reader

Permission is hereby granted, free of charge, to any person.
"""


def ask(
    *calls: tuple[str, dict[str, Any]], book: str = "", cwd: Path | None = None
) -> list[Any]:
    """Return each answer of one server; of a refusal its text."""
    from mcp import ClientSession, StdioServerParameters, stdio_client

    async def play() -> list[Any]:
        arguments = [
            "-P",
            "-m",
            "readerkit",
            "mcp",
            *(["--book", book] if book else []),
        ]
        # Of its own accord the client hands on a few variables alone.
        server = StdioServerParameters(
            command=sys.executable, args=arguments, env=dict(os.environ), cwd=cwd
        )
        async with (
            stdio_client(server) as (read, write),
            ClientSession(read, write) as session,
        ):
            await session.initialize()
            found: list[Any] = []
            for name, given in calls:
                if not name:
                    found.append((await session.list_tools()).tools)
                    continue
                done = await session.call_tool(name, given)
                text = done.content[0].text
                found.append(text if done.is_error else json.loads(text))
            return found

    return run_apart(asyncio.wait_for(play(), 4 * WAIT_S))


@pytest.fixture
def claimed(locked):
    locked.book.path("sample/linear.yaml").write_text(CLAIMED)
    return locked


def test_tools_are_told_with_what_they_take():
    [tools] = ask(("", {}))
    names = {tool.name: tool for tool in tools}
    assert {*names} == {
        *("find_notes", "read_note", "search_code", "resolve_anchor"),
        *("compare", "estimate", "ask_question"),
    }
    assert all(tool.description for tool in tools)
    assert "file" in names["resolve_anchor"].input_schema["required"]


def test_notes_are_found_and_read_with_lines_claims_and_licence(claimed):
    found, none, note = ask(
        ("find_notes", {"text": "SWITCH picks"}),
        ("find_notes", {"concept": "nowhere"}),
        ("read_note", {"id": "clo"}),
        book=str(claimed.book.root),
    )
    assert [each["id"] for each in found["notes"]] == ["close"]
    assert found["notes"][0]["lines"] == "lib/linear.py:14-17"
    assert none["notes"] == []
    assert (note["first"], note["last"], note["licence"]) == (14, 17, "MIT, Nobody")
    assert note["code"][0] == "14         if self.sequence_parallel:"
    [claim] = note["claims"]
    assert (claim["says"], claim["state"]) == ("One switch picks it", "holds")
    assert note["sources"] == ["A paper (2020) 3 https://example.org/paper"]


def test_code_is_searched_and_anchors_resolve_or_say_what_they_could_mean(locked):
    everywhere, lines, several, outside, empty = ask(
        ("search_code", {"text": "self.group", "upstream": "sample", "limit": 1}),
        ("resolve_anchor", {"file": "lib/linear.py", "symbol": "step"}),
        ("resolve_anchor", {"file": "lib/linear.py", "code": "self.group"}),
        ("resolve_anchor", {"file": "../etc/passwd", "symbol": "root"}),
        ("search_code", {"text": " ", "upstream": "sample"}),
        book=str(locked.book.root),
    )
    [row] = everywhere["found"]
    assert (row["line"], everywhere["more"]) == (15, 1)
    assert everywhere["licence"] == "MIT, Nobody"
    assert (lines["first"], lines["last"]) == (21, 24)
    assert "2 matches for 'self.group'" in several
    assert "../etc/passwd" in outside and "got nothing to look for" in empty


@pytest.mark.further
@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("LICENSE", MIT, "MIT, Ada Reader (LICENSE of the repository)"),
        (
            "LICENSE.md",
            MIT.replace("Ada Reader", "[Ada](https://example.org/)."),
            "MIT, Ada (LICENSE.md of the repository)",
        ),
        (
            "COPYING.md",
            "Ask me.",
            "that of COPYING.md of the repository, which is none that is known by its "
            "text",
        ),
        (
            "README",
            "Hello.",
            "none was found: the repository has no file LICENSE, LICENCE or COPYING at "
            "its top",
        ),
    ],
)
def test_a_book_of_ones_own_says_where_its_licence_is(tmp_path, file, text, said):
    root = tmp_path / "thing"
    make_repository(root, {"src/app.py": APP, file: text})
    book = str(root / "book")
    made = run_process("init", str(root), "--no-site")
    assert made.code == 0, made.stderr
    [found, note] = ask(
        ("search_code", {"text": "def ", "upstream": "thing"}),
        ("read_note", {"id": "first-note"}),
        book=book,
    )
    assert (found["licence"], note["licence"]) == (said, said)


def test_an_argument_that_a_tool_does_not_know_is_refused(locked):
    tools, refused = ask(
        ("", {}), ("find_notes", {"words": "nothing"}), book=str(locked.book.root)
    )
    assert "words" in refused and "not permitted" in refused
    assert not any(each.input_schema["additionalProperties"] for each in tools)


def test_a_book_without_a_quiz_says_how_to_begin_one(locked):
    [refused] = ask(("ask_question", {}), book=str(locked.book.root))
    assert "this book has no quiz; to begin one:" in refused
    assert "readerkit quiz init PHASE" in refused


def test_long_lines_and_many_are_cut_and_the_rest_is_counted(tmp_path, locked):
    """Of what a book holds, no more comes than anyone reads."""
    long = "- id: long\n  at: {file: lib/linear.py, symbol: Linear}\n  kind: note\n"
    long += f"  title: Long\n  text: {'word ' * 9_000}\n  concepts: [collectives]\n"
    write_files(locked.book.root / "annotations" / "sample", {"long.yaml": long})
    [note] = ask(("read_note", {"id": "long"}), book=str(locked.book.root))
    assert len(note["text"]) < 7_000 and "more characters" in note["text"]


SECRETS = {"key", "right", "correct", "solution", "explanation", "remarks", "says"}


def keys_in(value: Any) -> Iterator[str]:
    """Yield every key in a message, however deep."""
    if isinstance(value, dict):
        yield from value
        value = [*value.values()]
    for each in value if isinstance(value, list) else ():
        yield from keys_in(each)


def test_question_of_the_shipped_bank_comes_without_its_key(real_cache):
    bank = [*(ROOT / "quizzes" / "35").glob("*.yaml")]
    written = {
        each["id"]: each
        for path in bank
        if "." not in path.stem and path.stem != "bank"
        for each in yaml.safe_load(path.read_text())
    }
    ids = [
        next(name for name, each in written.items() if each["type"] == kind)
        for kind in ("single", "numeric", "locate", "predict")
    ]
    calls = [("ask_question", {"id": each, "seed": 3}) for each in ids]
    for name, answer in zip(ids, ask(*calls), strict=True):
        plain = answer["question"]
        assert plain["id"] == name and plain["prompt"]
        assert not SECRETS & {*keys_in(plain)}
        told = re.split(r"[{.`]", written[name]["explanation"])[0]
        assert len(told) < 20 or told not in json.dumps(answer)
        assert answer["to_answer"] == f"readerkit quiz 35 --only {name}"


@pytest.mark.further
def test_records_and_estimates_of_the_shipped_book(real_cache):
    all_, one, memory, file, wrong = ask(
        ("compare", {}),
        ("compare", {"comparison": "ddp-torch"}),
        ("estimate", {"what": "memory", "options": ["--model", "gpt2", "--dp", "2"]}),
        ("estimate", {"what": "memory", "options": ["--model", "/etc/passwd"]}),
        ("estimate", {"what": "memory", "options": ["--dp", "none"]}),
    )
    names = [each["comparison"] for each in all_["records"]]
    assert len(names) >= 30 and one["comparison"] in names
    assert one["agrees"] and one["conclusion"] and one["pins"]
    typed = ("estimate", "memory", "--model", "gpt2", "--dp", "2", "--json")
    shown = run_process(*typed)
    assert memory["result"] == json.loads(shown.out)
    assert "no file is read for this" in file and "--dp" in wrong


def test_nothing_of_the_folder_that_it_stands_in_is_run(real_cache, tmp_path):
    write_files(tmp_path, {"readerkit/__init__.py": "raise SystemExit('run')\n"})
    asked = {"what": "memory", "options": ["--model", "gpt2"]}
    [memory] = ask(("estimate", asked), cwd=tmp_path)
    assert memory["result"]["estimates"]


def test_extra_that_is_missing_is_said_in_one_line(tmp_path):
    write_files(tmp_path, {"mcp.py": "raise ImportError\n"})
    done = subprocess.run(
        [sys.executable, "-m", "readerkit", "mcp"],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(tmp_path), "PATH": ""},
        cwd=tmp_path,
    )
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and "readerkit-distributed[mcp]" in done.stderr


@pytest.mark.further
def test_no_question_is_asked_while_an_exam_is_open(real_cache):
    begun = run_process("quiz", "35", "--exam", "--json", stdin='{"stop": true}\n')
    assert '"type":"question"' in begun.out.replace(" ", ""), begun.err
    [refused] = ask(("ask_question", {}))
    assert "an exam that goes on" in refused

"""The first note of a new book: on the definition that its code names most often."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from readerkit.anchors import SourceFile
from readerkit.anchors.grammars import grammar, language_at
from readerkit.app.new_upstream import NewUpstream
from readerkit.errors import AnchorError, ReaderkitError
from readerkit.model.git_names import TreePath
from readerkit.wording.numbers import counted

MAX_FILES = 400
MAX_BYTES = 20_000_000
"""What is looked at: the choice is to take seconds, on any repository."""
LINES = range(4, 61)
"""How long a definition is that fits a screen and says something."""
MIN_NAME = 4


@dataclass(frozen=True, slots=True)
class _Definition:
    """A definition of one place; its file is not kept."""

    path: TreePath
    name: str
    kind: str
    length: int
    is_broken: bool
    """Whether something in its file does not parse."""

    @property
    def last(self) -> str:
        """Its own name, without those around it."""
        return self.name.rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class _Taste:
    """Which definitions will do."""

    lines: range = LINES
    min_name: int = MIN_NAME
    any_kind: bool = False
    """Classes too, and what is private."""
    broken: bool = False

    def likes(self, each: _Definition) -> bool:
        """Tell whether a definition will do."""
        is_handy = each.length in self.lines and len(each.last) >= self.min_name
        is_open = each.kind == "function" and not each.last.startswith("_")
        return (
            is_handy
            and (is_open or self.any_kind)
            and (self.broken or not each.is_broken)
        )


_TASTES = (
    _Taste(),
    _Taste(range(1, 61), 1),
    _Taste(range(1, 1_000_000), 1, any_kind=True),
    _Taste(range(1, 1_000_000), 1, any_kind=True, broken=True),
)
"""From what reads well to what there is: tiny functions have a first note too."""
_JOINED = re.compile("[a-z0-9](_[a-z0-9]|[A-Z])")
"""A name of several words; a plain one, as ``name``, is said of much else too."""
_WORD = re.compile(rb"[A-Za-z_]\w{3,}")
_DULL = re.compile(
    r"(^|[./_])(tests?|examples?|conftest|vendor|third_party|setup)([./_]|$)"
)


@dataclass(frozen=True, slots=True)
class FirstNote:
    """What a first note is on, and a sentence of it with what proves that."""

    path: TreePath
    symbol: str
    uses: int
    says: str
    claim: dict[str, Any]


def choose_first(new: NewUpstream) -> Iterator[FirstNote]:
    """Yield notes to begin with, the likeliest first.

    Raises:
        ReaderkitError: no file of it defines anything; or no grammar reads them.
    """
    texts = dict(_texts(new))
    words: Counter[bytes] = Counter()
    for data in texts.values():
        words.update(_WORD.findall(data))
    every = [each for path, data in texts.items() for each in _definitions(path, data)]
    for taste in _TASTES:
        found = [
            (words[each.last.encode()], each.path, each.name)
            for each in every
            if taste.likes(each)
        ]
        if found:
            break
    else:
        for path in texts:
            grammar(language_at(path))  # one that is missing is why
        raise ReaderkitError(
            f"{new.upstream.name}: no function or class that is defined once, of "
            f"{counted(len(texts), 'file')} looked at, so that there is nothing to "
            "begin a note on: name other files with --include"
        )
    found.sort(key=_likeliest)
    chosen = found[:20]
    for uses, path, name in chosen:
        for says, claim in _defaults(path, name, texts[path]):
            yield FirstNote(path, name, uses, says, {"default": claim})
    for uses, path, name in chosen:
        stands = {"file": str(path), "symbol": name}
        yield FirstNote(path, name, uses, f"{name} is defined here", {"stands": stands})


def _likeliest(found: tuple[int, TreePath, str]) -> tuple[bool, bool, int, str, str]:
    """Return how a definition is ranked: no test, of a telling name, named often."""
    uses, path, name = found
    is_plain = not _JOINED.search(name.rpartition(".")[2])
    return bool(_DULL.search(path)), is_plain, -uses, path, name


def _texts(new: NewUpstream) -> Iterator[tuple[TreePath, bytes]]:
    left = MAX_BYTES
    step = -(-len(new.paths) // MAX_FILES)  # of many files, some of each folder
    for path in new.paths[:: max(1, step)]:
        try:
            data = new.read(path)
        except ReaderkitError:  # too large: no file to begin with
            continue
        left -= len(data)
        if left < 0:
            return
        if b"\0" not in data:
            yield path, data


def _definitions(path: TreePath, data: bytes) -> Iterator[_Definition]:
    """Yield the definitions of a file that are of one place."""
    try:
        source = SourceFile(path, data)
        symbols, is_broken = source.symbols, source.root.has_error
    except AnchorError:
        return
    for name, [place, *others] in symbols.items():
        length = place.last - place.first + 1
        if not others:
            yield _Definition(path, name, place.kind, length, is_broken)


def _defaults(
    path: TreePath, name: str, data: bytes
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield sentences on the defaults of a Python function that are numbers."""
    if not path.endswith(".py"):
        return
    try:
        tree: ast.AST = ast.parse(data)
    except (SyntaxError, ValueError):
        return
    for part in name.split("."):
        defined = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        below = ast.iter_child_nodes(tree)
        tree = next(
            (each for each in below if isinstance(each, defined) and each.name == part),
            ast.Pass(),
        )
    if not isinstance(tree, ast.FunctionDef | ast.AsyncFunctionDef):
        return
    positional = [*tree.args.posonlyargs, *tree.args.args]
    given = [*zip(reversed(positional), reversed(tree.args.defaults), strict=False)]
    given += [
        (argument, default)
        for argument, default in zip(
            tree.args.kwonlyargs, tree.args.kw_defaults, strict=True
        )
        if default
    ]
    for argument, default in given:
        value = default.value if isinstance(default, ast.Constant) else None
        if isinstance(value, bool | int | float):
            says, at = f"{argument.arg} is {value} by default", f"{name}.{argument.arg}"
            yield says, {"file": str(path), "of": at, "is": value}

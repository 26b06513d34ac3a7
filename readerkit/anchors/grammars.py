"""The grammar and the queries of each language, loaded where a file asks for them.

Every grammar comes in its own package; nothing is fetched at run time.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from functools import cache
from importlib.resources import files

import tree_sitter

from readerkit.anchors.node_kinds import marks_by_names, strings_by_names, tags_by_names
from readerkit.errors import AnchorError, GrammarError
from readerkit.model.code_languages import (
    COMMENTS,
    ENDINGS,
    PYTHON,
    Language,
    language_of,
)

_CAPTURE = re.compile(r"@([\w.-]+)")
_ASIDE = re.compile(r";[^\n]*|\(#[^()]*\)")
"""A comment, or a condition, in a query."""


@cache
def language_at(path: str) -> Language:
    """Return the language of a file by its ending.

    Raises:
        AnchorError: an ending that no grammar here reads.
    """
    language = language_of(path)
    if language is None:
        known = sorted(e for e, each in ENDINGS.items() if each.comes_along)
        raise AnchorError(
            f"{path}: no grammar reads such a file: expected one of "
            f"{', '.join(known)}, or of another language that has one"
        )
    return language


@cache
def grammar(language: Language) -> tree_sitter.Language:
    """Return the grammar of a language.

    Raises:
        GrammarError: its package is not installed, or is none that loads.
    """
    try:
        module = importlib.import_module(language.package)
        found = tree_sitter.Language(getattr(module, language.function)())
        tree_sitter.Parser(
            found
        )  # tells one of another tree-sitter, which that does not
        return found
    except ModuleNotFoundError as error:
        if error.name not in (language.package, language.package.partition(".")[0]):
            raise _broken(language, error) from None
        raise GrammarError(
            f"the grammar of {language.title} is not installed",
            f"pip install {language.to_install}",
        ) from None
    # Files that are torn, another machine's, or of a tree-sitter that is not this one.
    except (ImportError, AttributeError, TypeError, ValueError, SyntaxError) as error:
        raise _broken(language, error) from None


def _broken(language: Language, error: Exception) -> GrammarError:
    said = str(error).partition("\n")[0] or type(error).__name__
    return GrammarError(
        f"the grammar of {language.title} does not load ({said})",
        f"pip install --force-reinstall {language.to_install}",
    )


# A query is never freed: in tree-sitter 0.26 that can end the process.
@cache
def query(language: Language, text: str) -> tree_sitter.Query:
    """Return a compiled query.

    Raises:
        tree_sitter.QueryError: it is none.
    """
    return tree_sitter.Query(grammar(language), text)


@cache
def tags_query(language: Language) -> tree_sitter.Query:
    """Return the query that names definitions, and nothing that only refers to them."""
    if language.is_of_pack:
        text = tags_by_names(grammar(language))
    else:
        packages = language.tags or (language.package,)
        texts = [_query_text(package, "tags.scm") for package in packages]
        text = "\n".join([*texts, language.own_tags])
    return _chosen(language, text, lambda name: name.startswith("definition."))


@cache
def marks_query(language: Language) -> tree_sitter.Query:
    """Return the query that says what each part of a line is."""
    return query(language, _marks_text(language))


@cache
def chosen_marks(
    language: Language, wanted: Callable[[str], bool]
) -> tree_sitter.Query:
    """Return the same query without the patterns of which no capture is wanted.

    It is another query than :func:`marks_query` gives, since a pattern that is turned
    off stays off.
    """
    return _chosen(language, _marks_text(language), wanted)


def _marks_text(language: Language) -> str:
    """Return a query for colours: that of its packages, or told from names of nodes."""
    packages = () if language.is_of_pack else language.marks or (language.package,)
    texts = [_query_text(package, "highlights.scm") for package in packages]
    return "\n".join(filter(None, texts)) or marks_by_names(grammar(language))


def _chosen(
    language: Language, text: str, wanted: Callable[[str], bool]
) -> tree_sitter.Query:
    found = tree_sitter.Query(grammar(language), text)
    whole = text.encode()
    for number in range(found.pattern_count):
        begin = found.start_byte_for_pattern(number)
        pattern = whole[begin : found.end_byte_for_pattern(number)].decode()
        names = _CAPTURE.findall(_ASIDE.sub("", pattern))
        if not any(map(wanted, names)):
            found.disable_pattern(number)
    return found


@cache
def comments_query(language: Language) -> tree_sitter.Query:
    """Return the query for comments, whatever the grammar calls them."""
    known = grammar(language)
    kinds = [kind for kind in sorted(COMMENTS) if known.id_for_node_kind(kind, True)]
    return query(language, "\n".join(f"({kind}) @comment" for kind in kinds))


@cache
def strings_query(language: Language) -> tree_sitter.Query:
    """Return the query for what code says in strings and characters."""
    return query(language, strings_by_names(grammar(language)))


def _query_text(package: str, name: str) -> str:
    """Return a query that comes with a grammar; empty where it has none."""
    try:
        return (files(package) / "queries" / name).read_text("utf-8")
    except FileNotFoundError:
        return ""


@cache
def python_grammar() -> tree_sitter.Language:
    """Return the grammar that patterns of Python are parsed with."""
    return grammar(PYTHON)

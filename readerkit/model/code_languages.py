"""The languages that are read: by which endings, with which grammar, how deep.

Python is read by its syntax, node by node. The others are read by their tokens, with
what the tags query of each grammar says of definitions: one way for all of them.
``anchors.grammars`` loads each where a file asks for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import PurePosixPath
from typing import Any

from readerkit.model.pack_languages import PACK, PROGRAMS, TEXTS, rows

COMMENTS = frozenset({"comment", "line_comment", "block_comment"})
_LAID_OUT = {
    *(
        "Elm",
        "F#",
        "F# signatures",
        "GDScript",
        "Haskell",
        "Nim",
        "PureScript",
        "Scala",
    ),
    *("Agda", "Firrtl", "YAML"),
}


@dataclass(frozen=True, slots=True)
class Language:
    """One language, and where its grammar and its queries are."""

    title: str
    package: str
    endings: tuple[str, ...]
    function: str = "language"
    tags: tuple[str, ...] = ()
    """Packages whose tags query holds here; its own where nothing is said."""
    marks: tuple[str, ...] = ()
    """The same of what is highlighted; a later one rules."""
    own_tags: str = ""
    """What that query leaves out, as a query."""
    scopes: dict[str, str] = field(default_factory=dict, hash=False)
    """Node types that only hold definitions, each with the field that names it."""

    comes_along: bool = True
    """Whether its grammar is installed with this toolkit."""
    is_python: bool = False
    """Whether patterns are compared by syntax, and claims know what code does."""
    is_program: bool = True
    """Whether a new book on a repository takes such files in."""

    @property
    def is_laid_out(self) -> bool:
        """Whether indentation is syntax, and no node of the tree tells all of it."""
        return self.title in _LAID_OUT

    @property
    def is_here(self) -> bool:
        """Whether its grammar is installed, loading or not."""
        return self.comes_along or find_spec(self.package.partition(".")[0]) is not None

    @property
    def is_of_pack(self) -> bool:
        """Whether its grammar comes without queries, in the pack of all grammars."""
        return self.package.startswith(f"{PACK}.")

    @property
    def to_install(self) -> str:
        """What ``pip install`` brings its grammar by."""
        if self.is_of_pack:  # since its version 1 it fetches grammars at run time
            return "'tree-sitter-language-pack<1'"
        return self.package.replace("_", "-")


_C = ("tree_sitter_c",)
_CPP = ("tree_sitter_c", "tree_sitter_cpp")
_JS = ("tree_sitter_javascript",)
_TS = ("tree_sitter_javascript", "tree_sitter_typescript")
_CPP_TAGS = """
(function_declarator declarator: (qualified_identifier) @name) @definition.method
(function_declarator declarator: (destructor_name) @name) @definition.method
(function_declarator declarator: (operator_name) @name) @definition.method
(namespace_definition name: (_) @name) @definition.module
"""
_TS_TAGS = """
(enum_declaration name: (identifier) @name) @definition.class
(type_alias_declaration name: (type_identifier) @name) @definition.class
(public_field_definition name: (_) @name
  value: [(arrow_function) (function_expression)]) @definition.method
(method_definition name: (_) @name) @definition.method
"""
_JS_TAGS = """
(method_definition name: (_) @name) @definition.method
(field_definition property: (_) @name
  value: [(arrow_function) (function_expression)]) @definition.method
"""
_JAVA_TAGS = """
(constructor_declaration name: (identifier) @name) @definition.method
(enum_declaration name: (identifier) @name) @definition.class
(record_declaration name: (identifier) @name) @definition.class
"""
LANGUAGES: tuple[Language, ...] = (
    Language("Python", "tree_sitter_python", (".py", ".pyi"), is_python=True),
    Language("C", "tree_sitter_c", (".c",), marks=_C),
    Language(
        "C++",
        "tree_sitter_cpp",
        (".cpp", ".cc", ".cxx", ".h", ".hpp", ".hh", ".hxx", ".inl"),
        marks=_CPP,
        own_tags=_CPP_TAGS,
    ),
    Language(
        "CUDA",
        "tree_sitter_cuda",
        (".cu", ".cuh"),
        tags=("tree_sitter_cpp",),
        marks=_CPP,
        own_tags=_CPP_TAGS,
    ),
    Language("Rust", "tree_sitter_rust", (".rs",), scopes={"impl_item": "type"}),
    Language("Go", "tree_sitter_go", (".go",)),
    Language(
        "JavaScript",
        "tree_sitter_javascript",
        (".js", ".mjs", ".cjs", ".jsx"),
        marks=_JS,
        own_tags=_JS_TAGS,
    ),
    Language(
        "TypeScript",
        "tree_sitter_typescript",
        (".ts", ".mts", ".cts"),
        function="language_typescript",
        tags=_TS,
        marks=_TS,
        own_tags=_TS_TAGS,
        scopes={"internal_module": "name"},
    ),
    Language(
        "TSX",
        "tree_sitter_typescript",
        (".tsx",),
        function="language_tsx",
        tags=_TS,
        marks=_TS,
        own_tags=_TS_TAGS,
        scopes={"internal_module": "name"},
    ),
    Language("Java", "tree_sitter_java", (".java",), own_tags=_JAVA_TAGS),
)
_BASH_TAGS = "(function_definition name: (word) @name) @definition.function"
_KOTLIN_TAGS = """
(class_declaration name: (_) @name) @definition.class
(object_declaration name: (_) @name) @definition.class
(function_declaration name: (_) @name) @definition.function
"""
_HASKELL_TAGS = "(function name: (_) @name) @definition.function"
_ZIG_TAGS = "(function_declaration name: (_) @name) @definition.function"


def _more(title: str, *endings: str, **more: Any) -> Language:
    """Return a language whose grammar is read where somebody installed it."""
    package = "tree_sitter_" + title.lower()
    return Language(
        title, **{"package": package, **more}, endings=endings, comes_along=False
    )


LANGUAGES += (
    _more("Bash", ".sh", ".bash", own_tags=_BASH_TAGS),
    _more(
        "C#",
        ".cs",
        package="tree_sitter_c_sharp",
        tags=("tree_sitter_c-sharp",),
        marks=("tree_sitter_c-sharp",),
    ),
    _more("Elixir", ".ex", ".exs"),
    _more("Haskell", ".hs", own_tags=_HASKELL_TAGS),
    _more("Julia", ".jl"),
    _more("Kotlin", ".kt", ".kts", own_tags=_KOTLIN_TAGS),
    _more("Lua", ".lua"),
    _more("OCaml", ".ml", function="language_ocaml"),
    _more("PHP", ".php", function="language_php"),
    _more("Ruby", ".rb"),
    _more("Scala", ".scala"),
    _more("YAML", ".yaml", ".yml", is_program=False),
    _more("Zig", ".zig", own_tags=_ZIG_TAGS),
)
LANGUAGES += tuple(
    Language(
        title,
        f"{PACK}.bindings.{name}",
        endings,
        comes_along=False,
        is_program=table is PROGRAMS,
    )
    for table in (PROGRAMS, TEXTS)
    for name, title, endings in rows(table)
)
ENDINGS = {ending: each for each in LANGUAGES for ending in each.endings}
"""Of file names, to the language. A header is read as C++, which nearly all C is."""
PYTHON = LANGUAGES[0]


def language_of(path: str) -> Language | None:
    """Return the language of a file by its ending; of one without, Python.

    None where no grammar reads such a file.
    """
    ending = PurePosixPath(path).suffix.lower()
    return ENDINGS.get(ending) if ending else PYTHON


def titles_here() -> str:
    """Return the languages whose grammar is installed; of the pack, how many more."""
    here = [each for each in LANGUAGES if each.is_here]
    titles = [each.title for each in here if not each.is_of_pack]
    more = len(here) - len(titles)
    return ", ".join(titles) + (
        f" and {more} more of the language pack" if more else ""
    )

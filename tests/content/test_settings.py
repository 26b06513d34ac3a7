"""Every variable of the environment that is read stands in the README, and no other."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.helpers import ROOT

README = (ROOT / "README.md").read_text()
SETTINGS = README.partition("| variable |")[2].partition("\n\n")[0]
TORCHRUN = {
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "TORCHELASTIC_RESTART_COUNT",
    "TORCHELASTIC_RUN_ID",
}
"""Set by ``torchrun`` beside those that the table names."""
READS = {"get", "pop", "getenv", "setdefault"}


def read_in(path: Path) -> set[str]:
    """Return the names that a module asks the environment for."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        asked: list[ast.expr] = []
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            asked = [node.slice] if _is_environment(node.value) else []
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in READS and _is_environment(node.func.value):
                asked = node.args[:1]
        elif isinstance(node, ast.Compare) and _is_environment(node.comparators[0]):
            asked = [node.left]
        elif isinstance(node, ast.keyword) and node.arg == "envvar":
            asked = [node.value]
        names |= {each.value for each in asked if isinstance(each, ast.Constant)}
    return names


def _is_environment(node: ast.expr) -> bool:
    return ast.unparse(node) in ("os.environ", "os")


def used() -> set[str]:
    modules = [*ROOT.glob("readerkit/**/*.py"), *ROOT.glob("mini_impls/**/*.py")]
    asked = set().union(*map(read_in, modules))
    texts = "".join(path.read_text() for path in modules)
    return asked | set(re.findall(r"\bREADERKIT_[A-Z]+\b", texts))


def test_every_variable_is_documented_in_one_place():
    documented = set(re.findall(r"`(_?[A-Z][A-Z_]+)`", SETTINGS))
    named = {f"READERKIT_{name}" for name in ("BOOK", "CACHE", "DATA", "COMMAND")}
    found = used()
    assert named <= found, "what is looked for is found"
    assert found - TORCHRUN <= documented
    theirs = {name for name in documented if name.startswith("READERKIT_")}
    assert theirs <= found, "and nothing is documented that nobody reads"


def test_uninstalling_names_the_distribution_and_both_folders():
    for words in (
        "readerkit cache --remove",
        "rm -r ~/.local/share/readerkit",
        "pip uninstall readerkit-distributed",
    ):
        assert words in README

"""From a name to its definition in another file, and back."""

from __future__ import annotations

import pytest

from readerkit.anchors import SourceFile
from readerkit.anchors.names import collect_names
from readerkit.anchors.scan import scan
from readerkit.links import Links, Target, absolute, module_name

FILES = {
    "lib/__init__.py": "from .base import *\nfrom .deep.ops import reduce as fold\n",
    "lib/base.py": (
        "LIMIT = 1\n_hidden = 2\nclass Base:\n    def run(self): ...\n"
        "    def both(self): ...\n"
    ),
    "lib/deep/__init__.py": "",
    "lib/deep/ops.py": (
        "try:\n    def reduce(): ...\nexcept E:\n    def reduce(): ...\n"
        "def once(): ...\n"
    ),
    "lib/loop.py": "from lib.pool import x\n",
    "lib/pool.py": "from lib.loop import x\n",
    "lib/use.py": (
        "import lib\nimport lib.deep.ops as o\nfrom lib import Base, fold\n"
        "from lib.base import Base as B\nfrom .deep import ops\nimport torch\n"
        "class Mine(B):\n    def both(self): ...\n"
        "class Own(Own): ...\n"
    ),
}


@pytest.fixture(scope="module")
def links():
    files = {}
    for path, text in FILES.items():
        source = SourceFile(path, text.encode())
        files["up", path] = collect_names(source, scan(source))
    return Links(files)


def where(link):
    return link and (link.part, [(t.path[4:], t.line, t.name) for t in link.targets])


FOUND = {
    "Base": (0, [("base.py", 3, "Base")]),
    "Base.run": (1, [("base.py", 4, "Base.run")]),
    "Base.gone": (0, [("base.py", 3, "Base")]),
    "lib.Base.run": (2, [("base.py", 4, "Base.run")]),
    "lib.LIMIT": (1, [("base.py", 1, "LIMIT")]),
    "lib.deep.ops.once": (3, [("deep/ops.py", 5, "once")]),
    "o.once": (1, [("deep/ops.py", 5, "once")]),
    "ops": (0, [("deep/ops.py", 1, "")]),
    "ops.once.gone": (1, [("deep/ops.py", 5, "once")]),
    "Mine.run": (1, [("base.py", 4, "Base.run")]),
    "fold": (0, [("deep/ops.py", 2, "reduce"), ("deep/ops.py", 4, "reduce")]),
}


@pytest.mark.parametrize(("chain", "expected"), FOUND.items())
def test_name_leads_to_its_definition(links, chain, expected):
    assert where(links.resolve(("up", "lib/use.py"), chain)) == expected


@pytest.mark.parametrize("chain", ["torch.add", "nothing", "print"])
def test_name_that_syntax_cannot_place_has_no_link(links, chain):
    assert links.resolve(("up", "lib/use.py"), chain) is None


def test_a_star_brings_no_hidden_name(links):
    assert where(links.resolve(("up", "lib/use.py"), "lib._hidden"))[0] == 0


def test_self_finds_its_own_method_before_a_base_class_has_it(links):
    def method(chain):
        return where(links.resolve(("up", "lib/use.py"), chain, "Mine"))

    assert method("self.both") == (1, [("use.py", 8, "Mine.both")])
    assert method("self.run") == (1, [("base.py", 4, "Base.run")])
    assert method("self.weight") is None


def test_circles_end(links):
    assert links.resolve(("up", "lib/loop.py"), "x") is None
    assert links.resolve(("up", "lib/use.py"), "self.m", "Own") is None


def test_a_definition_knows_its_uses():
    texts = {
        "a.py": "def f(): ...\n",
        "b.py": "from a import f\nf()\n",
        "c.py": "import a\na.f()\na.f()\n",
    }
    files = {}
    for path, text in texts.items():
        source = SourceFile(path, text.encode())
        files["up", path] = collect_names(source, scan(source))
    index = Links(files)
    uses = index.uses({file: index.links_of(file) for file in files})
    places = uses[Target("up", "a.py", 1, "f")]
    assert [(p.path, p.line) for p in places] == [
        ("b.py", 1),
        ("b.py", 2),
        ("c.py", 2),
        ("c.py", 3),
    ]


def test_names_of_modules():
    assert module_name("lib/deep/__init__.py") == "lib.deep"
    assert absolute(".", "lib/deep/ops.py") == "lib.deep"
    assert absolute("..base", "lib/deep/ops.py") == "lib.base"

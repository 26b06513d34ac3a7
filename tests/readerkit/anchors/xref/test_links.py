"""From a name to its definition in another file, and back."""

from __future__ import annotations

import pytest

from readerkit.anchors.xref.links import Links, Target, absolute, module_name, rivals
from readerkit.anchors.xref.names import collect_names

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
        files["up", path] = collect_names(text.encode())
    return Links(files)


def where(link):
    """The last part of a name that is known, and what it means."""
    if link is None:
        return None
    part, targets = link.parts[-1]
    return part, [(t.path[4:], t.line, t.name) for t in targets]


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


def joined(texts):
    files = {}
    for path, text in texts.items():
        files["up", path] = collect_names(text.encode())
    index = Links(files)
    return index, {file: index.links_of(file) for file in files}


def test_every_part_of_a_name_is_known_and_counted():
    texts = {
        "a.py": "class C:\n    def m(self): ...\nC.m()\n",
        "b.py": "import a\na.C.m()\n",
    }
    index, links = joined(texts)
    parts = index.resolve(("up", "b.py"), "a.C.m").parts
    assert [(part, targets[0].name) for part, targets in parts] == [
        (0, ""),
        (1, "C"),
        (2, "C.m"),
    ]
    uses = index.uses(links)
    for name, line in (("C", 1), ("C.m", 2)):
        places = uses[Target("up", "a.py", line, name)]
        assert [(p.path, p.line) for p in places] == [("a.py", 3), ("b.py", 2)]


def test_a_function_that_imports_a_name_means_what_it_imports():
    texts = {
        "a.py": "def f(): ...\n",
        "b.py": (
            "from a import f as g\ndef f():\n    from a import f\n    f()\n"
            "    import a as g\n    g.f()\n    def h():\n        return f\n"
            "f()\nclass K:\n    from a import f\n    f()\n"
        ),
    }
    index, links = joined(texts)
    uses = index.uses(links)
    there = [p.line for p in uses[Target("up", "a.py", 1, "f")] if p.path == "b.py"]
    assert there == [1, 3, 4, 6, 8, 11, 12]
    assert [p.line for p in uses[Target("up", "b.py", 2, "f")]] == [9]


def test_cls_and_self_may_be_names_as_any_other():
    files = {
        "lib/base.py": "class Base:\n    def run(self): ...\n",
        "lib/use.py": (
            "from .base import Base as cls\n"
            "class Mine(cls): ...\n"
            "class Own:\n"
            "    def client(self):\n"
            "        from .base import Base as cls\n"
            "        return cls().run\n"
            "    def either(self, cls=None):\n"
            "        if cls is None:\n"
            "            from .base import Base as cls\n"
            "        return cls()\n"
        ),
    }
    names = {("up", path): collect_names(text.encode()) for path, text in files.items()}
    links, use = Links(names), ("up", "lib/use.py")
    assert where(links.resolve(use, "Mine.run")) == (1, [("base.py", 2, "Base.run")])
    [local] = {each.owner for each in names[use].uses if each.line == 6}
    assert where(links.links_of(use)["cls", local]) == (0, [("base.py", 1, "Base")])
    assert not [each for each in names[use].uses if each.line > 6]


def test_another_name_that_a_package_gives_a_module_is_that_module():
    files = {
        "lib/__init__.py": "from lib import deep\nshort = deep\n",
        "lib/deep.py": "def once():\n    pass\n",
        "use.py": "from lib import short\nshort.once()\nimport lib\nlib.short.once()\n",
    }
    index, _ = joined(files)
    for chain, part in (("short.once", 1), ("lib.short.once", 2)):
        link = index.resolve(("up", "use.py"), chain)
        assert link.parts[-1] == (part, (Target("up", "lib/deep.py", 1, "once"),))


def test_an_import_from_elsewhere_hides_the_module_s_own_name():
    index, links = joined(
        {"a.py": "def f():\n    from gone import f\n    import os as f\n    f.path\n"}
    )
    assert index.uses(links) == {}


def test_candidates_in_another_file_are_known_of_each_other():
    _, links = joined(
        {
            "a.py": "def f(): ...\n",
            "b.py": "try:\n    from a import f\nexcept E:\n    f = None\nf()\n",
        }
    )
    there, here = Target("up", "a.py", 1, "f"), Target("up", "b.py", 4, "f")
    assert rivals(links) == {there: {here}, here: {there}}


def test_an_import_from_elsewhere_is_a_candidate_beside_what_stands_here():
    index, links = joined(
        {
            "a.py": (
                "try:\n    from gone import f\n    import far.away as m\n"
                "except E:\n    f = m = None\nf(m.x)\n"
                "class C(f):\n    def n(self): self.o(f.p)\n"
            )
        }
    )
    here = Target("up", "a.py", 5, "f")
    assert rivals(links)[here] == {Target("", "gone", 0, "f")}
    module = Target("up", "a.py", 5, "m")
    assert rivals(links)[module] == {Target("", "far.away", 0, "")}
    assert {place.line for place in index.uses(links)[here]} == {2, 6, 7, 8}


def test_a_module_that_may_be_another_makes_its_names_ambiguous():
    _, links = joined(
        {
            "stub.py": "def f(): ...\n",
            "a.py": (
                "try:\n    import gone as m\nexcept E:\n    import stub as m\nm.f()\n"
            ),
        }
    )
    (module, (_, targets)) = links["up", "a.py"]["m.f", ""].parts
    assert module == (0, (Target("up", "stub.py", 1), Target("", "gone", 0)))
    assert targets == (Target("up", "stub.py", 1, "f"), Target("", "gone", 0, "f"))


def test_a_method_of_an_ambiguous_base_has_every_candidate():
    _, links = joined(
        {
            "a.py": (
                "try:\n    class B:\n        def m(self): ...\nexcept E:\n"
                "    class B:\n        def m(self): ...\n"
                "class C(B):\n    def n(self): self.m()\n"
                "class D(B.gone):\n    def n(self): self.m()\n"
            )
        }
    )
    (_, targets) = links["up", "a.py"]["self.m", "C"].parts[0]
    assert [t.line for t in targets] == [3, 6]
    assert ("self.m", "D") not in links["up", "a.py"]


def test_a_definition_knows_its_uses():
    texts = {
        "a.py": "def f(): ...\n",
        "b.py": "from a import f\nf()\n",
        "c.py": "import a\na.f()\na.f()\n",
    }
    index, links = joined(texts)
    uses = index.uses(links)
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

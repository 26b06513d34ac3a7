"""Each kind of claim: what it holds to be so, and what it says of what is not."""

from __future__ import annotations

import re

import pytest
from msgspec import convert

from readerkit.claims.check_dispatch import hold
from readerkit.claims.ground import Ground
from readerkit.claims.proof import Proof
from readerkit.content.claims import Claim
from readerkit.content.resolved_notes import Sources
from readerkit.errors import SourceError
from readerkit.upstreams import Upstream

CONFIG = '''\
"""Options."""
from dataclasses import dataclass, field

LIMIT = 25 * 1024 * 1024
NAMES = ("a", "b")


@dataclass
class Config(Base):
    ready: bool = False
    size: int = 2**10
    names: list = field(default_factory=list)
    kind: Kind = Kind.auto
    depth: int = field(default=3, metadata={})
    late: int


def step(model, batch=None, *, scale: float = -1.5, **rest):
    unit = 1024 * 1024
    return model


def add_options(parser):
    parser.add_argument("--overlap", action="store_true", help="--overlap it")
    parser.add_argument("--no-fuse", action="store_false", dest="fuse")
    parser.add_argument("--size", type=int, default=4)
    parser.add_argument("--path", default=os.getcwd())
    parser.add_argument("--bare")
'''
TRAIN = '''\
"""Steps."""


class Trainer:
    def train(self, batch, config=Config(ready=True)):
        # all_reduce here? never
        if not batch:
            return None
        if self.off:
            raise ValueError("reduce nothing")
        elif config.ready and config.size > 3:
            self.start(batch)
        else:
            self.wait()
        handle = self.start(batch) if config.overlap else None
        for each in batch:
            if each is None:
                continue
            self.stop(each)
        config.ready = False
        return config.ready, handle

    def stop(self, each):
        assert self.running
        self.wait()


def main():
    Trainer().train([1])
    other = Trainer.train
'''
STUBS = '''\
"""Stubs, and what leaves inside of a with."""
from typing import overload
import typing as t


@overload
def make(size: int = 1) -> int: ...


@t.overload
def make(size: str = "2") -> str: ...


def make(size=4):
    return size


def step(x, y):
    with lock:
        if x:
            return
    reached()
    if y:
        with lock:
            return
    last()
    with suppress(ValueError):
        if not x:
            raise ValueError
        assert y
    swallowed()
'''
FILES = {
    "lib/config.py": CONFIG,
    "lib/stubs.py": STUBS,
    "lib/train.py": TRAIN,
    "lib/broken.py": "def f(:\n    late()\n",
    "far/away.py": "x = 1\n",
}


def ground(files: dict[str, str] = FILES) -> Ground:
    def upstream(name: str) -> Upstream:
        return Upstream(name, name, (f"{name}/*.py",), folder=name)

    def open_(each: Upstream) -> Sources:
        if each.name == "far":
            raise SourceError("no git here\nand no package")
        return Sources(each, paths["lib"], lambda path: files[path].encode())

    paths = {n: [p for p in files if p.startswith(n)] for n in ("lib", "far")}
    upstreams = {name: upstream(name) for name in paths}
    programs = {"good": '"""Tries."""\nRANKS = 2\nprint("sum = 3")\n'}
    programs |= {
        "long": '"""Tries."""\n' + "x = 1\n" * 40,
        "mute": "RANKS = 1\n",
        "many": '"""T."""\nRANKS = 3\nsum\n',
        "odd": '"""T."""\nRANKS = count()\nsum\n',
        "torn": '"""T.\n',
        "made": '"""T."""\nfor s in "ab":\n    print(f"sum_{s} = 3")\n',
        "told": '"""T."""\nsay = print\nsay("su" + "m_a = 3")\n',
        "wrote": '"""T."""\nimport sys\nsys.stdout.write("%s_a = 3" % "sum")\n',
        "plain": '"""T."""\nprint(f"sum = {3}", "sum_b =", 3)\nprint()\n',
    }
    return Ground(upstreams, paths, open_, lambda name: None, programs.get)


def held(check: dict, says: str = "words", files: dict[str, str] = FILES) -> Proof:
    return hold(convert({"says": says, **check}, Claim), ground(files))


def default(of: str, **then: object) -> dict:
    file = "lib/stubs.py" if of.startswith("make") else "lib/config.py"
    return {"default": {"file": file, "of": of, **then}}


def uses(of: str, how: str, *are: str, **more: object) -> dict:
    named = {"are": list(are)} if are or not more else {}
    return {"uses": {"of": of, "how": how, "in": ["lib/*.py"], **named, **more}}


def guard(code: str, *, symbol: str = "Trainer.train", **condition: object) -> dict:
    where = {"file": "lib/train.py", "symbol": symbol}
    return {"guard": {**where, "code": code, **condition}}


def stubbed(code: str, **condition: object) -> dict:
    return {"guard": {"file": "lib/stubs.py", "code": code, **condition}}


def order(*code: str, symbol: str = "Trainer.train") -> dict:
    return {"order": {"file": "lib/train.py", "symbol": symbol, "code": [*code]}}


def absent(**what: object) -> dict:
    return {"absent": {"in": ["lib/train.py", "lib/config.py"], **what}}


TRAINS = "lib/train.py::Trainer.train"
TRUE = [
    default("Config.ready", **{"is": False}),
    default("Config.size", **{"is": 1024}),
    default("Config.names", **{"is": []}),
    default("Config.depth", **{"is": 3}),
    default("Config.kind", code="Kind.auto"),
    default("LIMIT", **{"is": 26_214_400}),
    default("NAMES", **{"is": ["a", "b"]}),
    default("step.batch", **{"is": None}),
    default("step.scale", **{"is": -1.5}),
    default("step.unit", **{"is": 1_048_576}),
    default("--overlap", **{"is": False}),
    default("--no-fuse", **{"is": True}),
    default("--size", **{"is": 4}),
    default("--bare", **{"is": None}),
    {
        "stands": {
            "file": "lib/train.py",
            "symbol": "Trainer.stop",
            "code": "self.wait()",
        }
    },
    absent(code="all_reduce(...)"),
    absent(name="all_reduce"),
    absent(text="all_reduce"),
    absent(code="self.stop(...)", symbol="Trainer.stop"),
    uses("Trainer.start", "call", TRAINS),
    uses("start", "call", count=2),
    uses("train", "read", "lib/train.py::main"),
    uses("ready", "set", "lib/config.py::Config", TRAINS),
    uses("ready", "read", TRAINS),
    {"uses": {"of": "late", "how": "any", "in": ["lib/config.py"], "count": 0}},
    order("self.start(...)", "self.stop(...)", "return ..., ..."),
    guard("self.start(...)", under="config.ready and config.size > 3", symbol="x"),
    guard("self.stop(...)", unless="each is None"),
    guard("self.stop(...)", under="batch"),
    guard("self.stop(...)", unless="self.off"),
    guard("self.wait()", unless="config.ready and config.size > 3"),
    guard("self.wait()", symbol="Trainer.stop", under="self.running"),
    guard("self.start(...)", nth=2, under="config.overlap"),
    stubbed("reached()", unless="x"),
    stubbed("last()", unless="y"),
    default("make.size", **{"is": 4}),
]


@pytest.mark.parametrize("check", [c for c in TRUE if "'x'" not in str(c)], ids=str)
def test_what_is_so_holds(check):
    verdict = held(check)
    assert (verdict.state, verdict.upstream) == ("holds", "lib"), verdict.found
    assert "absent" in check or verdict.places or check["uses"]["count"] == 0


FALSE = [
    (default("Config.ready", **{"is": True}),
     "lib/config.py:10: Config.ready is False"),
    (default("Config.ready", **{"is": 0}), "lib/config.py:10: Config.ready is False"),
    (default("Config.kind", code="Kind"), "lib/config.py:13: Config.kind is Kind.auto"),
    (default("--no-fuse", **{"is": False}),
     "lib/config.py:25: what --no-fuse sets is True"),
    (default("Config.late", **{"is": 1}),
     "lib/config.py:15: Config.late is without a default"),
    (default("make.size", **{"is": 1}), "lib/stubs.py:14: make.size is 4"),
    (absent(code="self.stop(...)"),
     "it stands in lib/train.py:19: self.stop(each)"),
    (absent(text="reduce nothing"),
     "it stands in lib/train.py:10: reduce nothing"),
    (absent(name="batch", symbol="step"), "it stands in lib/config.py:18: batch"),
    (uses("start", "call", "lib/train.py::main"),
     f"{TRAINS} too; not lib/train.py::main (lib/train.py:12: self.start(batch); "
     "lib/train.py:15: self.start(batch))"),
    (uses("start", "call", count=1),
     "2 places: lib/train.py:12; lib/train.py:15"),
    (uses("stop", "call", count=0), "1 place: lib/train.py:19"),
    (uses("train", "set", count=1), "no place"),
    (order("self.stop(...)", "self.start(...)"),
     "lib/train.py:12: self.start(batch) before lib/train.py:19: self.stop(each)"),
    (guard("self.start(...)", under="config.ready"),
     "not under 'config.ready': lib/train.py:15: self.start(batch)"),
    (guard("self.stop(...)", under="each is None"),
     "not under 'each is None': lib/train.py:19: self.stop(each)"),
    (guard("self.start(...)", nth=2, under="config.ready and config.size > 3"),
     "not under 'config.ready and config.size > 3': lib/train.py:15: "
     "self.start(batch)"),
    (stubbed("swallowed()", unless="not x"),
     "not unless 'not x': lib/stubs.py:31: swallowed()"),
]  # fmt: skip


@pytest.mark.parametrize(("check", "found"), FALSE, ids=lambda each: str(each)[:60])
def test_what_is_not_so_is_told_with_what_is(check, found):
    assert (held(check).state, held(check).found) == ("false", found)


LOST = [
    (default("Config.kind", **{"is": "auto"}),
     "lib/config.py:13: Config.kind is Kind.auto, which is no literal: ask for 'code'"),
    (default("--path", **{"is": "."}),
     "lib/config.py:27: what --path sets is os.getcwd(), "
     "which is no literal: ask for 'code'"),
    (uses("nobody", "call", count=1), "nothing is called 'nobody' in lib/*.py"),
    (uses("start", "call", TRAINS, "lib/train.py::Trainer.stopp"),
     "lib/train.py: no symbol 'Trainer.stopp'"),
    (uses("start", "call", TRAINS, "lib/train.py::main"),
     "no call of 'start' in lib/train.py::main"),
    (uses("start", "call", TRAINS, "lib/gone.py::main"),
     "no upstream includes a file 'lib/gone.py'"),
    (guard("self.start(...)", nth=3, under="batch"),
     "lib/train.py: nth is out of range: got 3, expected 1 to 2"),
    (default("Config.redy", **{"is": 1}),
     "lib/config.py: no field of Config is called 'redy'"),
    (default("Confg.ready", **{"is": 1}), "lib/config.py: no symbol 'Confg'"),
    (default("step.rest2", **{"is": 1}),
     "lib/config.py: no parameter or local of step is called 'rest2'"),
    (default("--sise", **{"is": 1}),
     "lib/config.py: no call of add_argument with '--sise'"),
    (default("LIMITS", **{"is": 1}),
     "lib/config.py: no constant of this module is called 'LIMITS'"),
    ({"default": {"file": "lib/confg.py", "of": "X", "is": 1}},
     "no upstream includes a file 'lib/confg.py'"),
    ({"absent": {"name": "x", "in": ["lab/*.py"]}},
     "no upstream includes a file like 'lab/*.py'"),
    (absent(code="x", symbol="Nobody"),
     "no file of lib/train.py, lib/config.py has Nobody"),
    (absent(code="..."), "pattern '...' matches everything: add a name to it"),
    (absent(code="a b c"), "pattern 'a b c' is not one expression, statement or header "
     "of Python (a range of several has 'from' and 'to')"),
    (order("self.start(...)", "self.begin(...)"),
     "lib/train.py: no match for 'self.begin(...)' in Trainer.train"),
    (guard("self.start(...)", under="config.redy"),
     "lib/train.py: no match for 'config.redy' in Trainer.train"),
    ({"run": {"record": "nobody", "operation": "all_reduce", "calls": 1}},
     "unknown record: got 'nobody'"),
    ({"value": {"of": "2 +"}}, "not a formula: got '2 +'"),
    ({"value": {"of": "ring_steps(ranks=0)"}}, "ring_steps: ranks: got 0"),
    ({"value": {"of": "2 * n"}}, "unknown name 'n': expected one of -"),
    ({"value": {"of": "n", "with": {"n": {"file": "lib/config.py", "of": "NAMES"}}}},
     'lib/config.py:5: NAMES is ("a", "b"), which is no number'),
    *((
        {"experiment": {"name": name, "prints": {"sum": 3}}}, said)
      for name, said in {
        "none": "no program annotations/experiments/none.py",
        "long": "annotations/experiments/long.py: got 41 lines, expected at most 40",
        "mute": "annotations/experiments/mute.py: says nowhere what it tries",
        "many": "annotations/experiments/many.py: RANKS is 3, expected 1 or 2",
        "odd": "annotations/experiments/odd.py: RANKS is no literal",
        "torn": "annotations/experiments/torn.py: is no Python: ",
      }.items()),
    ({"experiment": {"name": "good", "prints": {"summ": 3}}},
     "annotations/experiments/good.py: prints no figure 'summ'"),
    ({"experiment": {"name": "plain", "prints": {"sum_a": 3}}},
     "annotations/experiments/plain.py: prints no figure 'sum_a'"),
]  # fmt: skip


@pytest.mark.parametrize(("check", "said"), LOST, ids=lambda each: str(each)[:60])
def test_what_a_claim_names_and_is_not_there_is_told(check, said):
    verdict = held(check)
    assert verdict.state == "lost"
    assert verdict.found.startswith(said), verdict.found


def test_too_many_places_of_a_pattern_are_refused():
    files = {"lib/a.py": "f(x)\n" * 201}
    verdict = held({"absent": {"code": "f(x)", "in": ["lib/a.py"]}}, files=files)
    assert verdict.found == (
        "lib/a.py: 'f(x)' stands in 201 places, expected at most 200: add a name to it"
    )


VALUES = [
    ("25 * 1024 * 1024 / 4", "6,553,600 elements of fp32", True),
    ("25 * 1024 * 1024", "a cap of 25 MiB", True),
    ("25", "a cap of 25 MiB", True),
    ("3 / 16", "18.75% of the time", True),
    ("3 / 16", "3/16 of the time", True),
    ("3 / 16", "19% of the time", True),
    ("3 / 16", "18% of the time", False),
    ("3 / 2", "1.5x of the paper", True),
    ("2", "twice as much", True),
    ("1 / 2", "half of it", True),
    ("33 * 10**6 + 1000", "33M elements", True),
    ("10 / 4", "2 buckets, or 3", False),
    ("4", "no number at all", False),
    ("n * 2", "2,048 bytes", True),
    ("ring_all_reduce_bytes(size_bytes=n, ranks=4)", "1,536 bytes a rank", True),
    ("ring_all_reduce_bytes(size_bytes=n, ranks=8)", "1,536 bytes a rank", False),
]


@pytest.mark.parametrize(("formula", "says", "holds"), VALUES)
def test_a_value_is_a_number_that_the_words_print(formula, says, holds):
    size = {"n": {"file": "lib/config.py", "of": "Config.size"}}
    verdict = held({"value": {"of": formula, "with": size}}, says)
    assert verdict.state == ("holds" if holds else "false"), verdict.found


def test_what_is_not_at_hand_is_open_and_says_why():
    far = {"default": {"file": "far/away.py", "of": "x", "is": 1}}
    assert held(far) == Proof("open", "far is not at hand: no git here")


@pytest.mark.parametrize("name", ["made", "told", "wrote"])
def test_of_names_that_a_program_makes_only_its_run_tells(name):
    check = {"experiment": {"name": name, "prints": {"sum_a": 3}}}
    assert held(check).state == "open"


def test_what_only_a_program_or_nobody_decides_is_open():
    program = {"experiment": {"name": "good", "prints": {"sum": 3}}}
    assert (
        held(program).state == held({"undecided": "A paper says so."}).state == "open"
    )


@pytest.mark.parametrize(
    "check",
    [
        {"absent": {"code": "late()", "in": ["lib/broken.py"]}},
        uses("late", "call", count=1),
    ],
)
def test_code_that_does_not_parse_proves_nothing(check):
    assert held(check).state == "lost"
    assert "does not parse" in held(check).found


STANDS = {"stands": {"file": "lib/train.py", "symbol": "Trainer.stop"}}
WENT = [
    (default("step.scale", **{"is": 1}), "step.scale", "def step"),
    (default("Config.gone", **{"is": 1}), "Config", "class Config"),
    (default("--size", **{"is": 4}), "--size", 'parser.add_argument("--size"'),
    ({"value": {"of": "l", "with": {"l": default("LIMIT")["default"]}}}, "LIMIT", ""),
    (STANDS, "Trainer.stop", "def stop"),
    (absent(name="x", symbol="Trainer.stop"), "Trainer.stop", "def stop"),
    (uses("stop", "call", TRAINS), "Trainer.train", "def train"),
    (guard("self.stop(...)", under="batch"), "Trainer.train", "def train"),
    (guard("self.stop(...)", symbol="main", under="batch"), "main", "def main"),
    (
        {"order": {"file": "lib/train.py", "code": ["assert 0", "self.running"]}},
        "'self.running'",
        "assert self.running",
    ),
]


FORKS = """\
def f(x):
    if a():
        b()
    elif c():
        d()
    else:
        e()
    y = g() if h() else i()
    match x:
        case 1 if j():
            k()
        case _ if l():
            m()
    try:
        n()
    except A:
        o()
    except B:
        p()
    else:
        q()
    if x:
        return
    while r():
        s()
    else:
        t()
"""
EXCLUSIVE = ["bc", "bd", "be", "de", "gi", "kl", "km", "op", "oq", "pq"]
ONE_AFTER_ANOTHER = ["ab", "ac", "ae", "cd", "ce", "bg", "jk", "jl", "jm", "no", "nq"]
ONE_AFTER_ANOTHER += ["rs", "rt", "st", "dk", "et"]


def test_branches_are_tested_one_after_another():
    check = {"order": {"file": "lib/forks.py", "code": ["if a():", "elif c():", "d()"]}}
    files = {"lib/forks.py": FORKS, "far/away.py": ""}
    assert held(check, files=files).state == "holds"


@pytest.mark.parametrize("pair", EXCLUSIVE + ONE_AFTER_ANOTHER)
def test_places_of_which_one_alone_is_reached_have_no_order(pair):
    check = {"order": {"file": "lib/forks.py", "code": [f"{name}()" for name in pair]}}
    proof = held(check, files={"lib/forks.py": FORKS, "far/away.py": ""})
    assert proof.state == ("false" if pair in EXCLUSIVE else "holds")
    assert ("never both" in proof.found) == (pair in EXCLUSIVE)


@pytest.mark.parametrize(("check", "what", "first"), WENT)
def test_what_went_to_another_file_is_told_with_its_place(check, what, first):
    files = {path: "assert 0\n" for path in FILES} | {
        "lib/loop.py": TRAIN,
        "lib/options.py": CONFIG,
    }
    proof = held(check, "4", files)
    [told] = [row for row in proof.near if " now, " in row]
    name, path, line = re.fullmatch(
        r"(.+) stands in (.+) now, lines (\d+)-\d+", told
    ).groups()
    assert (proof.state, name) == ("lost", what)
    assert files[path].splitlines()[int(line) - 1].strip().startswith(first)


def test_what_went_nowhere_or_stands_all_over_is_not_told_of():
    gone = {"stands": {"file": "lib/train.py", "symbol": "Trainer.gone"}}
    assert not any(" now, " in row for row in held(gone).near)
    files = FILES | {f"lib/{n}.py": "wait()\n" for n in range(9)}
    wide = {"in": ["lib/*.py"], "symbol": "Trainer.stop", "code": "(("}
    assert not any(" now, " in row for row in held({"absent": wide}).near)
    everywhere = {"stands": {"file": "lib/config.py", "code": "wait()"}}
    assert not any(" now, " in row for row in held(everywhere, files=files).near)

"""Claims about a run are held against what the shipped record saw."""

from __future__ import annotations

import re

import pytest
from msgspec import convert

from readerkit.claims.check_dispatch import hold
from readerkit.claims.ground import Ground
from readerkit.content.claims import Claim
from readerkit.content.resolved_notes import Sources
from readerkit.evidence.record import Record
from readerkit.model.git_names import CommitId
from readerkit.upstreams import Upstream
from tests.helpers import ROOT

TEXT = (ROOT / "annotations/records/ddp_torch.json").read_text()
MINI = "mini_impls/ddp.py"


def held(
    check: dict, text: str = TEXT, more: bytes = b"", also: tuple[Upstream, ...] = ()
) -> tuple[str, str]:
    record = Record.parse(text, "ddp_torch.json")
    minis = Upstream("minis", "Minis", ("mini_impls/*.py",), folder="mini_impls")
    sources = Sources(minis, [MINI], lambda path: (ROOT / path).read_bytes() + more)
    known = {"ddp_torch": record}
    ground = Ground(
        {each.name: each for each in (minis, *also)},
        {"minis": [MINI]},
        lambda _: sources,
        known.get,
        lambda _: None,
    )
    proof = hold(convert({"says": "words", "run": check}, Claim), ground)
    return proof.state, proof.found


def calls(count: int, **more: str) -> dict:
    ask = {"record": "ddp_torch", "operation": "all_reduce", "calls": count}
    return {**ask, **more}


def lines(ran: bool, symbol: str) -> dict:
    return {"record": "ddp_torch", "file": MINI, "symbol": symbol, "ran": ran}


@pytest.mark.parametrize(
    ("check", "state", "found"),
    [
        (calls(4), "holds", "ddp_torch (upstream): 4 all-reduces a rank"),
        (calls(4, side="mini", phase="backward"), "holds", "4 all-reduces a rank"),
        (calls(0, phase="forward"), "holds", "0 all-reduces a rank"),
        (calls(5), "false", "4 all-reduces a rank"),
        (lines(True, "DistributedDataParallel.forward"), "holds", " ran in ddp_torch"),
        (lines(False, "DistributedDataParallel.forward"), "false", " ran in ddp_torch"),
        (lines(False, "DistributedDataParallel.no_sync"), "holds", " did not run in "),
    ],
)
def test_a_record_says_what_ran_and_what_was_sent(check, state, found):
    assert held(check)[0] == state and found in held(check)[1], held(check)


def test_another_record_makes_it_false():
    less = TEXT.replace('"op": "all_reduce"', '"op": "broadcast"', 1)
    state, found = held(calls(4, side="mini"), less)
    assert state == "false" and re.search("rank 0 3 all-reduces; rank 1 4", found)


def test_a_record_of_other_code_decides_nothing():
    """Not even that the number is another: it was counted elsewhere."""
    state, found = held(lines(True, "DistributedDataParallel.forward"), more=b"\n#\n")
    other = "the record ddp_torch is of other code, and tells nothing of this: "
    assert state == "lost" and found.startswith(other + MINI)
    pin = Upstream("pytorch", "PyTorch", ("torch/*.py",), commit=CommitId("1" * 40))
    for count in (4, 0):
        state, found = held(calls(count), also=(pin,))
        assert state == "lost" and found.startswith(other + "pytorch has changed")

"""What docstrings show is what is so: every example in them is run."""

from __future__ import annotations

import doctest
from importlib import import_module

from tests.readerkit.test_layers import MODULES


def test_examples_in_docstrings_hold(capsys):
    shown = [n for n, path in MODULES.items() if ">>> " in path.read_text("utf-8")]
    failed = {
        name: capsys.readouterr().out
        for name in shown
        if doctest.testmod(import_module(name)).failed
    }
    assert shown and not failed, "\n".join(failed.values())

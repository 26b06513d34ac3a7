"""Questions on a real terminal, and the ^C that comes as soon as one is asked."""

from __future__ import annotations

import sys

from tests.terminals import Terminal

ASK = """
import click
from readerkit.system import prompt
prompt.install()
click.confirm("Edit it again?", default=True, err=True)
"""
TIMES = 20
"""Without `prompt`, every second one of these was lost."""


def test_an_interrupt_right_at_the_question_ends_it():
    for _ in range(TIMES):
        with Terminal(sys.executable, "-c", ASK) as person:
            person.read_until("Edit it again? [Y/n]: ")
            person.type("\x03")
            assert person.close() != 0
            assert "Abort" in person.shown
            assert "[Y/n]: ^C\n" in person.shown.replace("\r", "")


def test_an_answer_is_taken():
    with Terminal(sys.executable, "-c", ASK) as person:
        person.read_until("Edit it again? [Y/n]: ")
        person.type("n\r")
        assert person.close() == 0

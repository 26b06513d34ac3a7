"""Options that belong together, as one decorator that knows their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


class OptionGroup:
    """Several options as one decorator, in the order in which they are listed."""

    def __init__(self, *decorators: Callable[[Any], Any]) -> None:
        """Take what adds them."""
        self._decorators = decorators
        self._names = frozenset[str]()

    def __call__(self, command: Command) -> Command:
        """Add them to a command."""
        before = len(_params(command))
        for decorator in reversed(self._decorators):
            command = decorator(command)
        self._names = frozenset(str(each.name) for each in _params(command)[before:])
        return command

    @property
    def names(self) -> frozenset[str]:
        """By which a command gets what they say, once they are one's."""
        return self._names


def _params(command: Any) -> list[click.Parameter]:
    return getattr(command, "__click_params__", [])

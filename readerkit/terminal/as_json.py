"""What a program is told: JSON, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import click


def print_json(value: Any) -> None:
    """Print JSON in ASCII: a terminal's encoding can neither change it nor obey it.

    A number that JSON has no word for is a bug, not output.
    """
    click.echo(json.dumps(value, indent=1, allow_nan=False))

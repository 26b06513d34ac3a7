"""Where a line of code belongs: which upstream, and its path inside the repository."""

from collections.abc import Collection, Mapping
from pathlib import Path

import torch

import mini_impls

TORCH_ROOT = Path(torch.__file__).resolve().parent.parent
MINIS_ROOT = Path(mini_impls.__file__).resolve().parent.parent

PACKAGES = {"minis": "mini_impls", "pytorch": "torch", "megatron": "megatron"}
"""What is an upstream's own below its root: site-packages holds others too."""

AROUND = ("mini_impls/compare/", "mini_impls/demos/")
"""What runs the minis, and is none."""

LAUNCHER = ("minis", "mini_impls/launch.py")
"""What a rank comes from: each of its stacks ends there."""


class Places:
    """Turns the file names of frames into (upstream, path in its repository).

    `locked` are the files of upstreams whose lines are noted; None stands for all.
    """

    def __init__(
        self,
        roots: Mapping[str, Path],
        locked: Collection[tuple[str, str]] | None = None,
    ) -> None:
        self._locked = locked
        self._prefixes = [
            (f"{root}/", f"{root}/{PACKAGES[name]}/", name)
            for name, root in roots.items()
        ]
        self._known: dict[str, tuple[str, str] | None] = {}

    def find(self, filename: str) -> tuple[str, str] | None:
        """Return upstream and path, or None for code of neither."""
        if filename not in self._known:
            self._known[filename] = self._search(filename)
        return self._known[filename]

    def find_noted(self, filename: str) -> tuple[str, str] | None:
        """Return the same; None for code whose lines are not noted, too."""
        place = self.find(filename)
        if place is None or place[1].startswith(AROUND):
            return None
        is_noted = self._locked is None or place[0] == "minis" or place in self._locked
        return place if is_noted else None

    def _search(self, filename: str) -> tuple[str, str] | None:
        for root, package, name in self._prefixes:
            if filename.startswith(package):
                return name, filename[len(root) :]
        return None


def get_roots(megatron: Path | None) -> dict[str, Path]:
    """Return the folder of every upstream, above the paths that anchors use."""
    roots = {"minis": MINIS_ROOT, "pytorch": TORCH_ROOT}
    return roots if megatron is None else {"megatron": megatron.resolve(), **roots}

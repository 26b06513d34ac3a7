"""Real code of seven languages from the package index, as one git repository.

Sdists are fetched without running their build into a cache outside of the repository;
nothing of them is executed. The same versions give the same files every time.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from readerkit.anchors import SourceFile
from readerkit.errors import AnchorError
from readerkit.upstreams.package_source import _download_sdist
from readerkit.upstreams.upstream import Package

SDISTS = {
    "polars-lts-cpu": "1.9.0",
    "grpcio": "1.9.1",
    "orjson": "3.9.9",
    "jupyterlab": "4.7.0a2",
    "pyzmq": "27.3.0",
    "cryptography": "50.0.2",
    "jpype1": "1.7.1",
    "attrs": "26.1.0",
    "flask": "3.1.3",
}
MOST = {
    ".py": 1_300, ".rs": 1_800, ".c": 450, ".h": 530, ".cc": 550, ".cpp": 50,
    ".ts": 124, ".js": 290, ".java": 130, ".go": 40, ".tsx": 3,
}  # fmt: skip
"""Files of each kind at most, so that no language is most of it."""
FILES = 5_000


def repository(root: Path, cache: Path, files: int = FILES) -> list[str]:
    """Write a repository of so many files, and return their paths.

    Where fewer are wanted, each kind gives its share.
    """
    by_kind: dict[str, list[tuple[str, bytes]]] = defaultdict(list)
    for name, version in SDISTS.items():
        for path, data in _members(_archive(name, version, cache)):
            if len(by_kind[Path(path).suffix]) < MOST.get(Path(path).suffix, 0):
                by_kind[Path(path).suffix].append((f"{name}/{path}", data))
    taken = sorted(each for kind in by_kind.values() for each in kind)
    step = max(1, len(taken) // files)
    taken = taken[::step][:files]
    for path, data in taken:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    git = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@localhost"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "Code"]):
        subprocess.run([*git, *command], check=True)
    return [path for path, _ in taken]


def _archive(name: str, version: str, cache: Path) -> Path:
    cache.mkdir(parents=True, exist_ok=True)
    wanted = f"{name}-{version}.tar.gz".replace("-", "_")
    for file in cache.iterdir():
        if file.name.replace("-", "_").lower() == wanted:
            return file
    print(f"fetching {name} {version}", file=sys.stderr)
    return _download_sdist(Package(name=name, version=version), cache)


def _members(file: Path) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(file) as archive:
        for member in archive:
            path = member.name.partition("/")[2]
            opened = archive.extractfile(member) if member.isfile() else None
            if opened and Path(path).suffix in MOST and path.isprintable():
                data = opened.read()
                if data and _is_source(path, data):
                    yield path, data


def _is_source(path: str, data: bytes) -> bool:
    """Tell whether it is no bundle of a script on one line."""
    try:
        SourceFile(path, data)
    except AnchorError:
        return False
    return max(map(len, data.split(b"\n"))) < 2_000

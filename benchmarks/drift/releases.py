"""Releases of libraries from the package index, as git histories: a commit a release.

They come by pip into a cache folder outside of the repository; sdists are fetched
without running their build. Nothing of them is executed.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from packaging.version import Version

from readerkit.errors import SourceError
from readerkit.upstreams.package_source import _download_sdist
from readerkit.upstreams.upstream import Package

RELEASES = {
    "click": "8.1.0 8.1.2 8.1.3 8.1.4 8.1.6 8.1.7 8.1.8 8.2.0 8.2.1 8.3.0",
    "rich": "10.0.0 10.4.0 10.9.0 10.12.0 10.16.2 11.2.0 12.0.1 12.2.0 12.4.4 12.6.0 "
    "13.0.1 13.2.0 13.3.5 13.5.3 13.6.0 13.7.1",
    "pytest": "7.0.0 7.1.0 7.1.3 7.2.0 7.2.2 7.3.0 7.4.0 7.4.4 8.0.0 8.0.2 8.1.0 8.1.2 "
    "8.2.0 8.2.2 8.3.0 8.3.3 8.3.5 8.4.0 8.4.2 9.0.0 9.0.3 9.1.0 9.2.0",
    "starlette": "0.28.0 0.30.0 0.32.0 0.34.0 0.35.0 0.36.3 0.37.0 0.38.6 0.39.2 "
    "0.40.0 0.41.3 0.42.0 0.44.0 0.45.3 0.46.2 0.47.3 0.48.0 0.49.3 0.50.0 0.52.1 "
    "1.0.0 1.2.1 1.4.1 1.6.0 1.8.0 1.10.0",
    "jinja2": "2.10 2.10.3 2.11.0 2.11.3 3.0.0 3.0.3 3.1.0 3.1.2 3.1.4 3.1.6",
    "deepspeed": "0.15.0 0.15.1 0.15.2 0.15.3 0.15.4 0.16.0 0.16.1 0.16.2 0.16.3 "
    "0.16.4 0.16.5 0.16.6 0.16.7 0.16.8 0.16.9 0.17.0 0.17.1 0.17.2 0.17.3 0.17.4 "
    "0.17.5 0.17.6 0.18.0 0.18.1 0.18.2 0.18.3 0.18.4 0.18.5 0.18.6 0.18.7 "
    "0.18.8 0.18.9 0.19.0 0.19.1 0.19.2 0.19.3 0.19.4 0.19.5",
    "torch": "2.9.0 2.11.0 2.13.0 2.14.1",
    "megatron-core": "0.12.0 0.12.3 0.13.0 0.13.1 0.14.0 0.15.0 0.15.3 0.16.0 0.16.1",
}
_SDISTS = {"deepspeed", "megatron-core"}
_KINDS = (
    ".py", ".pyi", ".js", ".css", ".html", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".c",
    ".md", ".rst", ".toml", ".yaml", ".yml", ".json",
)  # fmt: skip
_MAX_BYTES = 2_000_000


def repository(name: str, cache: Path) -> Path:
    """Return the history of a library, made in the cache if it is not there."""
    root = cache / "histories" / name
    done = root / "done"
    if done.is_file() and done.read_text() == RELEASES[name]:
        return root
    files = [(Version(v), _archive(name, v, cache)) for v in RELEASES[name].split()]
    subprocess.run(["git", "init", "-q", "--bare", str(root)], check=True)
    command = ["git", "-C", str(root), "fast-import", "--quiet", "--force"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        assert process.stdin
        for number, (version, file) in enumerate(sorted(files)):
            for part in _commit(number, str(version), dict(_members(file))):
                process.stdin.write(part)
    done.write_text(RELEASES[name])
    return root


def _archive(name: str, version: str, cache: Path) -> Path:
    found = find_spec(name)
    if name == "torch" and found and metadata.version(name).startswith(version):
        return Path(found.origin or "").parent  # it is here: its wheel is large
    folder = cache / "archives" / name
    folder.mkdir(parents=True, exist_ok=True)
    exact = re.compile(rf"-{re.escape(version)}(-.*\.whl|\.tar\.gz)$")
    for file in folder.iterdir():
        if exact.search(file.name):
            return file
    print(f"fetching {name} {version}", file=sys.stderr)
    if name in _SDISTS:
        try:
            return _download_sdist(Package(name=name, version=version), folder)
        except SourceError:
            pass  # this release has wheels alone
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--only-binary", ":all:", "--implementation", "cp"]
    # torch for a Mac has the same Python, and a tenth of the bytes.
    mac = name == "torch"
    machine = "macosx_14_0_arm64" if mac else "manylinux_2_28_x86_64"
    command += ["--python-version", "3.12", "--platform", machine]
    command += ["--platform", "macosx_11_0_arm64"] if mac else []
    command += ["--platform", "any", "--dest", str(folder), f"{name}=={version}"]
    subprocess.run(command, check=True)
    return next(file for file in folder.iterdir() if exact.search(file.name))


def _members(file: Path) -> Iterator[tuple[str, bytes]]:
    if file.is_dir():
        for path in sorted(file.rglob("*.py")):
            if path.stat().st_size < _MAX_BYTES:
                yield path.relative_to(file.parent).as_posix(), path.read_bytes()
        return
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as archive:
            for info in archive.infolist():
                if info.file_size < _MAX_BYTES and info.filename.endswith(_KINDS):
                    yield info.filename, archive.read(info)
        return
    with tarfile.open(file) as archive:
        for member in archive:
            if member.size < _MAX_BYTES and member.name.endswith(_KINDS):
                opened = archive.extractfile(member) if member.isfile() else None
                if opened:
                    yield member.name.partition("/")[2], opened.read()


def _commit(number: int, version: str, files: dict[str, bytes]) -> Iterator[bytes]:
    when = 1_700_000_000 + number * 86_400
    yield f"commit refs/heads/main\ncommitter a <a@localhost> {when} +0000\n".encode()
    yield f"data {len(version)}\n{version}\ndeleteall\n".encode()
    for path, data in sorted(files.items()):
        yield b"M 100644 inline " + path.encode() + b"\ndata %d\n" % len(data) + data
        yield b"\n"
    yield f"\nreset refs/tags/v{version}\nfrom refs/heads/main\n\n".encode()

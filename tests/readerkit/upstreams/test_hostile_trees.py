"""Trees that no honest git writes: made by hand, object by object, and refused."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from readerkit.errors import SourceError
from readerkit.upstreams import Upstream
from readerkit.upstreams.git_source import serve_git
from readerkit.upstreams.upstream import Licence
from tests.helpers import git

pytestmark = pytest.mark.sampled

SOURCE = b"x = 1\n"
FILE, FOLDER, LINK = "100644", "40000", "120000"
Entry = tuple[str, bytes, str]
"""Mode, name, and the id of what it names."""


def write_object(repository: Path, kind: str, data: bytes) -> str:
    command = ["git", "-C", str(repository), "hash-object", "-w", "--literally"]
    done = subprocess.run(
        [*command, "-t", kind, "--stdin"], input=data, capture_output=True, check=True
    )
    return done.stdout.decode().strip()


def write_tree(repository: Path, entries: list[Entry]) -> str:
    rows = [b"%s %s\0%s" % (m.encode(), n, bytes.fromhex(i)) for m, n, i in entries]
    return write_object(repository, "tree", b"".join(rows))


class Forge:
    """A repository whose trees are written by hand."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "sample"
        self.root.mkdir()
        git(self.root, "init", "--quiet", "--template=")
        for key in ("uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"):
            git(self.root, "config", key, "true")
        self.file = write_object(self.root, "blob", SOURCE)
        self.folder = write_tree(self.root, [(FILE, b"x.py", self.file)])

    def upstream(self, entries: list[Entry]) -> tuple[Upstream, str]:
        """Return an upstream pinned at a commit of such a tree, and the tree's id."""
        tree = write_tree(self.root, entries)
        commit = git(self.root, "commit-tree", tree, "-m", "first")
        git(self.root, "tag", "--force", "v1", commit)
        return (
            Upstream(
                name="sample",
                title="Sample",
                include=("**",),
                url=self.root.as_uri(),
                tag="v1",
                commit=commit,
                licence=Licence("MIT", "LICENSE", "Nobody"),
            ),
            tree,
        )


@pytest.fixture(scope="module")
def forge(tmp_path_factory) -> Forge:
    return Forge(tmp_path_factory.mktemp("forge"))


def error_of(upstream: Upstream, cache: Path) -> str:
    with pytest.raises(SourceError) as refused:
        serve_git(upstream, None, cache)
    assert "\n" not in str(refused.value)
    assert list(cache.iterdir()) == []
    return str(refused.value)


NAMES = [
    *(b"..", b".", b".git", b".GIT", b".gIt", b"GIT~1", b"git~1", b".git ", b".git."),
    *(b".git...", b".git . .", ".g\u200cit".encode(), ".git\ufeff".encode()),
    *(b"a/b", b"../x.py", b"/x.py", b"lib/", b".git\\x", b".git::$INDEX_ALLOCATION"),
]


@pytest.mark.parametrize("kind", ["file", "folder"])
@pytest.mark.parametrize("name", NAMES)
def test_tree_with_such_an_entry_is_refused_by_its_id(name, kind, forge, tmp_path):
    entry = (FILE, name, forge.file) if kind == "file" else (FOLDER, name, forge.folder)
    upstream, tree = forge.upstream([entry])
    assert tree in error_of(upstream, tmp_path / "cache")


@pytest.mark.parametrize("name", NAMES)
def test_it_is_refused_where_nobody_includes_it_too(name, forge, tmp_path):
    inner = write_tree(forge.root, [(FILE, name, forge.file)])
    upstream, _ = forge.upstream(
        [(FOLDER, b"docs", inner), (FOLDER, b"lib", forge.folder)]
    )
    upstream = replace(upstream, include=("lib/*.py",))
    assert inner in error_of(upstream, tmp_path / "cache")


@pytest.mark.parametrize(
    "modes",
    [
        *((FILE, FILE), (FILE, FOLDER), (FOLDER, FOLDER), (FILE, LINK), (LINK, LINK)),
        *(("100777",), ("100666",), ("100640",), ("100000",), ("777",), ("60000",)),
        *(("20000",), ("140000",), ("10000",), ("0100644",), ("0120000",)),
    ],
)
def test_names_twice_and_modes_that_git_does_not_write_are_refused(
    modes, forge, tmp_path
):
    ids = {FOLDER: forge.folder}
    entries = [(mode, b"x.py", ids.get(mode, forge.file)) for mode in modes]
    upstream, tree = forge.upstream(entries)
    assert tree in error_of(upstream, tmp_path / "cache")


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        (b"a\nb.py", "holds a control character"),
        (b"\x1b[2Ja.py", "holds a control character"),
        (b"a\x7f.py", "holds U\\+007F, which cannot be seen"),
        ("a\u200b.py".encode(), "holds U\\+200B, which cannot be seen"),
        ("a\u202eyp.b".encode(), "holds U\\+202E"),
        ("a\u00a0.py".encode(), "holds U\\+00A0"),
        ("a\u3164.py".encode(), "holds U\\+3164"),
        ("u\u0308.py".encode(), "Unicode's form NFC"),
        (b"a\\b.py", "is absolute or not a POSIX path"),
        (b"C:x.py", "is absolute or not a POSIX path"),
        (b"git~2", "git's own folder"),
        (b"x" * 241, "is longer than"),
    ],
)
def test_included_name_that_a_lock_may_not_hold_is_refused(
    name, problem, forge, tmp_path
):
    upstream, _ = forge.upstream([(FILE, name, forge.file)])
    with pytest.raises(SourceError, match=problem) as refused:
        serve_git(upstream, None, tmp_path / "cache")
    assert str(refused.value).isprintable()
    beside = replace(upstream, include=("lib/*.py",))
    assert serve_git(beside, None, tmp_path / "cache").files == {}


@pytest.mark.parametrize("mode", ["100644", "100755", "100664"])
def test_ordinary_tree_is_served(mode, forge, tmp_path):
    upstream, _ = forge.upstream(
        [
            (FILE, b".gitattributes", forge.file),
            (FILE, os.fsencode("größe.py"), forge.file),
            (mode, b"x.py", forge.file),
        ]
    )
    served = serve_git(upstream, None, tmp_path / "cache")
    assert sorted(served.files) == [".gitattributes", "größe.py", "x.py"]


@pytest.mark.parametrize("to", [b"x.py", b"../../secret", b"/etc/passwd", b""])
def test_link_is_said_to_be_one_and_never_followed(to, forge, tmp_path):
    target = write_object(forge.root, "blob", to)
    upstream, _ = forge.upstream(
        [(LINK, b"a.py", target), (LINK, b"lib", target), (FILE, b"x.py", forge.file)]
    )
    served = serve_git(upstream, None, tmp_path / "cache")
    assert served.files == {"x.py": SOURCE}
    assert served.links == ("a.py", "lib")
    for path, problem in (("a.py", "is a link"), ("lib/x.py", "is behind lib, a link")):
        with pytest.raises(SourceError, match=f"{problem}, and links are never") as no:
            serve_git(upstream, [path], tmp_path / "cache")
        assert path in str(no.value)

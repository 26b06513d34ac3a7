import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from readerkit.errors import SourceError
from readerkit.upstreams import Upstream
from readerkit.upstreams.folder_source import folder_source, serve_below
from readerkit.upstreams.source_protocol import MAX_MEMBER_BYTES
from readerkit.upstreams.upstream import Licence
from tests.helpers import git, make_repository, write_files

pytestmark = pytest.mark.sampled

FILES = {
    "lib/a.py": b"x = 1\r\n",
    "lib/b/c.py": b"\xff\x00",
    "lib/b/d.txt": b"not included\n",
    "other/e.py": b"not included\n",
    "LICENSE": b"Do as you like.\n",
}
INCLUDED = {"lib/a.py": FILES["lib/a.py"], "lib/b/c.py": FILES["lib/b/c.py"]}
UPSTREAM = Upstream(
    name="sample",
    title="Sample",
    include=("lib/**/*.py",),
    licence=Licence("MIT", "LICENSE", "Nobody"),
    tag="v1",
    commit="f" * 40,
)


@pytest.fixture
def root(tmp_path) -> Path:
    return write_files(tmp_path / "root", FILES)


@pytest.fixture
def cache(tmp_path) -> Path:
    return tmp_path / "cache" / "git"


# --- a repository of another user ---

NOT_ROOT = os.geteuid() != 0


def owned_by_another(root: Path) -> Upstream:
    commit = make_repository(root, FILES)
    for path in (root, *root.rglob("*")):
        os.chown(path, 12345, 12345)
    return replace(UPSTREAM, commit=commit)


@pytest.mark.skipif(NOT_ROOT, reason="only root can give files away")
def test_checkout_of_another_user_is_read_without_git(tmp_path, cache):
    root = tmp_path / "theirs"
    upstream = owned_by_another(root)
    served = folder_source(root, cache)(upstream, None)
    assert served.files == INCLUDED
    assert not served.proves_commit
    assert served.origin == (
        f"the files checked out in {root}, a repository of another user"
    )


@pytest.mark.skipif(NOT_ROOT, reason="only root can give files away")
def test_bare_repository_of_another_user_says_what_to_do(tmp_path, cache):
    root = tmp_path / "theirs"
    upstream = owned_by_another(root)
    with pytest.raises(SourceError, match=r"of another user.*name a copy of your own"):
        folder_source(root / ".git", cache)(upstream, None)


# --- a directory ---


def test_included_files_are_served_as_they_are(root, cache):
    served = folder_source(root, cache)(UPSTREAM, None)
    assert served.files == INCLUDED
    assert served.licence == FILES["LICENSE"]
    assert served.origin == f"folder {root}"
    assert served.public == "a local folder"
    assert not served.proves_commit
    assert not cache.exists()


def test_only_asked_files_are_read(root, cache):
    (root / "lib" / "b" / "c.py").unlink()
    served = folder_source(root, cache)(UPSTREAM, ["lib/a.py"])
    assert served.files == {"lib/a.py": FILES["lib/a.py"]}


@pytest.mark.parametrize(
    "include, expected",
    [
        pytest.param(["lib/*.py"], ["lib/a.py"], id="one-folder"),
        pytest.param(["lib/b/c.py"], ["lib/b/c.py"], id="one-file"),
        pytest.param(["lib/b/c.py", "lib/**/*.py"], list(INCLUDED), id="twice"),
        pytest.param(["**/c.py"], ["lib/b/c.py"], id="any-folder"),
        pytest.param(["*/a.py"], ["lib/a.py"], id="any-top-folder"),
        pytest.param(["LICENSE"], ["LICENSE"], id="file-at-the-top"),
        pytest.param(["l?b/*.py"], ["lib/a.py"], id="question-mark"),
        pytest.param(["nowhere/*.py"], [], id="no-such-folder"),
        pytest.param(["/lib/*.py"], [], id="absolute"),
    ],
)
def test_globs_find_what_they_include(include, expected, root):
    upstream = replace(UPSTREAM, include=tuple(include))
    assert sorted(serve_below(root, upstream, None).files) == sorted(expected)


def test_folder_of_a_build_is_no_repository(root, cache):
    (root / "objects").mkdir()
    assert folder_source(root, cache)(UPSTREAM, None).files == INCLUDED


def test_folder_without_a_licence_serves(root, cache):
    (root / "LICENSE").unlink()
    served = folder_source(root, cache)(UPSTREAM, None)
    assert served.files == INCLUDED
    assert served.licence is None


@pytest.mark.parametrize("to", ["a.py", "../../secret.py", "/etc/passwd", "gone.py"])
def test_link_is_left_out_of_a_list_and_told(to, root, cache):
    (root / "lib" / "link.py").symlink_to(to)
    served = folder_source(root, cache)(UPSTREAM, None)
    assert served.files == INCLUDED
    assert served.links == ("lib/link.py",)


def test_root_may_itself_be_a_link(root, cache, tmp_path):
    (tmp_path / "link").symlink_to(root)
    assert folder_source(tmp_path / "link", cache)(UPSTREAM, None).files == INCLUDED


def link_out(root: Path) -> str:
    (root.parent / "secret.py").write_text("secret = 1\n")
    (root / "lib" / "out.py").symlink_to(root.parent / "secret.py")
    return "lib/out.py"


def folder_link_out(root: Path) -> str:
    write_files(root.parent / "elsewhere", {"secret.py": "secret = 1\n"})
    (root / "lib" / "out").symlink_to(root.parent / "elsewhere")
    return "lib/out/secret.py"


def link_inside(root: Path) -> str:
    (root / "lib" / "same.py").symlink_to("a.py")
    return "lib/same.py"


def folder_link_inside(root: Path) -> str:
    (root / "lib" / "same").symlink_to("b")
    return "lib/same/c.py"


def link_to_nothing(root: Path) -> str:
    (root / "lib" / "nothing.py").symlink_to("gone.py")
    return "lib/nothing.py"


def link_to_itself(root: Path) -> str:
    (root / "lib" / "loop.py").symlink_to("loop.py")
    return "lib/loop.py"


def named_pipe(root: Path) -> str:
    os.mkfifo(root / "lib" / "pipe.py")
    return "lib/pipe.py"


def large_file(root: Path) -> str:
    with (root / "lib" / "large.py").open("wb") as file:
        file.truncate(MAX_MEMBER_BYTES + 1)
    return "lib/large.py"


@pytest.mark.parametrize(
    "make, message",
    [
        pytest.param(link_out, "is a link, and links are never", id="link-out"),
        pytest.param(
            folder_link_out, "is behind lib/out, a link", id="folder-link-out"
        ),
        pytest.param(link_inside, "is a link, and links are never", id="link-inside"),
        pytest.param(
            folder_link_inside, "is behind lib/same, a link", id="folder-link"
        ),
        pytest.param(lambda root: "lib/gone.py", "No such file", id="missing"),
        pytest.param(lambda root: "lib/b", "not a regular file", id="folder"),
        pytest.param(lambda root: "lib/a.py/x", "Not a directory", id="below-a-file"),
        pytest.param(link_to_nothing, "is a link, and links", id="link-to-nothing"),
        pytest.param(link_to_itself, "is a link, and links", id="link-to-itself"),
        pytest.param(named_pipe, "not a regular file", id="named-pipe"),
        pytest.param(large_file, "4,000,001 bytes, expected at", id="too-large"),
    ],
)
def test_path_that_is_no_file_of_the_folder_is_an_error(make, message, root):
    path = make(root)
    with pytest.raises(SourceError, match=message) as caught:
        serve_below(root, UPSTREAM, ["lib/a.py", path])
    assert path in str(caught.value)
    assert "secret = 1" not in str(caught.value)


@pytest.mark.parametrize("path", ["lib", "link", "pipe"], ids=lambda path: path)
def test_licence_outside_the_folder_is_not_read(path, root, cache):
    (root.parent / "secret").write_text("secret")
    (root / "link").symlink_to("../secret")
    os.mkfifo(root / "pipe")
    upstream = replace(UPSTREAM, licence=Licence("MIT", path, "Nobody"))
    assert folder_source(root, cache)(upstream, None).licence is None


def test_missing_folder_is_an_error(tmp_path, cache):
    with pytest.raises(SourceError, match="gone is not a folder"):
        folder_source(tmp_path / "gone", cache)(UPSTREAM, None)


# --- a local git repository ---


@pytest.fixture
def checkout(tmp_path) -> Path:
    root = tmp_path / "checkout"
    make_repository(root, FILES)
    return root


def pinned(checkout: Path) -> Upstream:
    return replace(UPSTREAM, commit=git(checkout, "rev-parse", "v1^{commit}"))


def test_pinned_commit_of_a_repository_is_served_and_not_its_work_tree(checkout, cache):
    upstream = pinned(checkout)
    (checkout / "lib" / "a.py").write_text("edited = 1\n")
    (checkout / "lib" / "b" / "c.py").unlink()
    write_files(checkout, {"lib/new.py": "untracked = 1\n", "LICENSE": "Mine.\n"})
    served = folder_source(checkout, cache)(upstream, None)
    assert served.files == INCLUDED
    assert served.licence == FILES["LICENSE"]
    assert served.proves_commit
    assert checkout.as_uri() in served.origin
    assert served.public.startswith("a local git repository at ")


def test_line_ends_that_a_work_tree_changed_do_not_matter(tmp_path, cache):
    root = tmp_path / "checkout"
    make_repository(root, {**FILES, "lib/a.py": "x = 1\n"})
    upstream = pinned(root)
    write_files(root, {".gitattributes": "*.py text eol=crlf\n"})
    (root / "lib" / "a.py").unlink()
    git(root, "checkout", "--", "lib/a.py")
    assert (root / "lib" / "a.py").read_bytes() == b"x = 1\r\n"
    served = folder_source(root, cache)(upstream, None)
    assert served.files["lib/a.py"] == b"x = 1\n"


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("clone --bare {checkout} {copy}", id="bare"),
        pytest.param(
            "clone --depth=1 --branch=v1 file://{checkout} {copy}", id="shallow"
        ),
        pytest.param("-C {checkout} worktree add {copy} v1", id="work-tree"),
        pytest.param("clone --no-checkout {checkout} {copy}", id="nothing-checked-out"),
    ],
)
def test_every_shape_of_repository_serves(command, checkout, cache, tmp_path):
    copy = tmp_path / "co py"
    filled = [part.format(checkout=checkout, copy=copy) for part in command.split(" ")]
    git(tmp_path, "-c", "advice.detachedHead=false", *filled)
    assert folder_source(copy, cache)(pinned(checkout), None).files == INCLUDED


def test_repository_without_the_commit_is_an_error(checkout, cache):
    with pytest.raises(SourceError, match=r"tag v1 of .* has moved|not our ref"):
        folder_source(checkout, cache)(UPSTREAM, None)


def test_repository_is_left_as_it_was(checkout, cache):
    def state() -> dict[str, bytes]:
        return {
            str(path): path.read_bytes()
            for path in checkout.rglob("*")
            if path.is_file()
        }

    before = state()
    folder_source(checkout, cache)(pinned(checkout), None)
    assert state() == before


# --- a clone that holds only a part ---


def partial_clone(checkout: Path, folder: Path, *shape: str) -> Path:
    """Clone without blobs from a server, check out lib/ alone; the server goes away."""
    served = folder / "served.git"
    git(folder, "clone", "--quiet", "--bare", str(checkout), str(served))
    for key in ("uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"):
        git(served, "config", key, "true")
    clone = folder / "partial"
    options = ("--quiet", "--filter=blob:none", "--sparse", "--no-checkout", *shape)
    git(folder, "clone", *options, served.as_uri(), str(clone))
    git(clone, "sparse-checkout", "set", "lib")
    git(clone, "checkout", "--quiet", "v1")
    served.rename(folder / "gone.git")
    return clone


@pytest.fixture
def elsewhere(tmp_path) -> Path:
    """A repository whose file outside lib/ is like no other."""
    root = tmp_path / "elsewhere"
    make_repository(root, {**FILES, "other/e.py": "of nobody's concern\n"})
    return root


def missing_blobs(clone: Path) -> set[str]:
    rows = git(clone, "rev-list", "--objects", "--missing=print", "HEAD").split("\n")
    return {row.removeprefix("?") for row in rows if row.startswith("?")}


@pytest.mark.parametrize("shape", [(), ("--depth=1",)], ids=["whole", "shallow"])
def test_partial_clone_serves_what_it_has(shape, elsewhere, cache, tmp_path):
    clone = partial_clone(elsewhere, tmp_path, *shape)
    assert len(missing_blobs(clone)) == 1, "other/e.py"
    served = folder_source(clone, cache)(pinned(elsewhere), None)
    assert (served.files, served.licence) == (INCLUDED, FILES["LICENSE"])
    assert served.proves_commit
    bare = folder_source(clone / ".git", cache)(pinned(elsewhere), None)
    assert bare.files == INCLUDED


def test_partial_clone_without_a_wanted_file_says_so_and_fetches_nothing(
    elsewhere, cache, tmp_path
):
    clone = partial_clone(elsewhere, tmp_path)
    wanted = replace(pinned(elsewhere), include=("lib/**/*.py", "other/*.py"))
    before = missing_blobs(clone)
    lacks = rf"{clone} lacks 1 file of the commit.*: other/e\.py first"
    with pytest.raises(SourceError, match=lacks):
        folder_source(clone, cache)(wanted, None)
    assert missing_blobs(clone) == before

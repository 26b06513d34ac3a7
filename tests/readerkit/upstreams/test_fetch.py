import json
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, replace
from importlib import invalidate_caches
from pathlib import Path

import pytest
from msgspec import convert, structs

from readerkit.errors import MovedTagError, SourceError, StoreError
from readerkit.upstreams import BlobStore, Lock, Upstream
from readerkit.upstreams import git_commands as readerkit_git
from readerkit.upstreams import store as store_module
from readerkit.upstreams.fetch import fetch, list_files, missing_files
from readerkit.upstreams.provenance import read_provenance
from readerkit.upstreams.store import blob_id
from tests.helpers import (
    ROOT,
    WAIT_S,
    git,
    make_book,
    make_repository,
    run,
    write_files,
)
from tests.processes import is_gone, wait_for
from tests.readerkit.upstreams.archives import (
    NAME,
    SDIST,
    VERSION,
    index_files,
    make_sdist,
)
from tests.readerkit.upstreams.full_disk import on_full_disk
from tests.readerkit.upstreams.servers import git_server, http_server, silent_server

pytestmark = pytest.mark.sampled

FILES = {
    "fakelib/__init__.py": b"",
    "fakelib/a.py": b"a = 1\r\n",
    "fakelib/b/c.py": b"c = 1\n" * 2000,
}
LICENCE = b"Do as you like.\n"
OTHER = b"a = 'not the locked bytes'\n"


@dataclass(frozen=True)
class World:
    """An upstream that every source has, and where each of them keeps it."""

    upstream: Upstream
    book: Path
    repository: Path
    site: Path
    index: dict[str, bytes]
    asked: list[str]
    store: BlobStore

    @property
    def lock(self) -> Lock:
        blobs = {path: blob_id(data) for path, data in FILES.items()}
        return Lock(self.upstream.commit, blobs)

    def spoil(self, source: str) -> None:
        """Let one file of a source differ from the lock."""
        if source == "installed":
            (self.site / "fakelib" / "a.py").write_bytes(OTHER)
        elif source == "package":
            self.index.update(index_files({SDIST: sdist({"fakelib/a.py": OTHER})}))
        else:
            raise AssertionError("git proves its bytes: see lose")

    def lose(self, source: str) -> None:
        """Let a source have nothing at all."""
        if source == "installed":
            shutil.rmtree(self.site / "fakelib")
        elif source == "git":
            self.repository.rename(self.repository.with_name("gone"))
        else:
            self.index.clear()


def sdist(changed: dict[str, bytes] | None = None) -> bytes:
    files = {**FILES, "LICENSE": LICENCE, **(changed or {})}
    return make_sdist((f"x-{VERSION}/{name}", data) for name, data in files.items())


@pytest.fixture
def world(tmp_path, monkeypatch):
    for name in list(os.environ):
        if name.startswith("PIP_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    repository = tmp_path / "served" / "sample"
    commit = make_repository(repository, {**FILES, "LICENSE": LICENCE})
    site = write_files(tmp_path / "site", FILES)
    monkeypatch.syspath_prepend(site)
    invalidate_caches()
    entry = {
        "name": "sample",
        "title": "Sample",
        "url": repository.as_uri(),
        "tag": "v1",
        "commit": commit,
        "include": ["fakelib/**/*.py"],
        "licence": {"spdx": "MIT", "path": "LICENSE", "holder": "Nobody"},
        "package": {"name": NAME, "version": VERSION},
        "installed": "fakelib",
    }
    with http_server(index_files({SDIST: sdist()})) as index:
        monkeypatch.setenv("PIP_INDEX_URL", f"{index.url}/simple")
        made = World(
            convert(entry, Upstream),
            tmp_path / "book",
            repository,
            site,
            index.files,
            index.asked,
            BlobStore(tmp_path / "cache"),
        )
        write_files(
            made.book / "annotations",
            {
                "upstreams.yaml": json.dumps([entry]),
                "references.yaml": "[]\n",
                "concepts.yaml": "[]\n",
                "sample.lock": made.lock.to_text(),
            },
        )
        yield made


def fetch_all(world: World, **options) -> list[str]:
    """Fetch, and return the lines that say what happened."""
    lines: list[str] = []
    fetch(world.upstream, world.lock, world.store, report=lines.append, **options)
    return [line for line in lines if not line.endswith("…")]


def files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


# --- which source serves ---

INSTALLED_DIFFERS = (
    "sample: not from installed: 1 of 3 files of installed fakelib in {site} differ "
    f"from the lock, fakelib/a.py first: got blob {blob_id(OTHER)}, "
    f"expected {blob_id(FILES['fakelib/a.py'])}"
)
PACKAGE_DIFFERS = (
    f"sample: not from package: 1 of 3 files of package {NAME} 1.0 (sdist) "
    f"differ from the lock, fakelib/a.py first: got blob {blob_id(OTHER)}, "
    f"expected {blob_id(FILES['fakelib/a.py'])}"
)
NOT_INSTALLED = "sample: not from installed: fakelib is not installed here"
NO_GIT = "sample: not from git: git ls-remote: fatal: '{repository}' does not appear "
SERVED = {
    "installed": "sample: 3 files from installed fakelib in {site}",
    "git": "sample: 3 files from git file://{repository} at {commit}",
    "package": f"sample: 3 files from package {NAME} 1.0 (sdist)",
}


@pytest.mark.parametrize(
    "spoilt, lost, refusals, serves",
    [
        pytest.param([], [], [], "installed", id="all-there"),
        pytest.param(
            ["installed"], [], [INSTALLED_DIFFERS], "git", id="installed-differs"
        ),
        pytest.param([], ["installed"], [NOT_INSTALLED], "git", id="not-installed"),
        pytest.param(
            ["installed"],
            ["git"],
            [INSTALLED_DIFFERS, NO_GIT],
            "package",
            id="installed-differs-and-git-is-out-of-reach",
        ),
    ],
)
def test_first_source_with_the_locked_bytes_serves(
    spoilt, lost, refusals, serves, world, capsys
):
    for source in spoilt:
        world.spoil(source)
    for source in lost:
        world.lose(source)
    result = run(capsys, "fetch", "--book", str(world.book))
    names = {
        "site": world.site,
        "repository": world.repository,
        "commit": world.upstream.commit[:12],
    }
    *lines, summary = result.out.splitlines()
    for line, wanted in zip(lines, [*refusals, SERVED[serves]], strict=True):
        assert line.startswith(wanted.format(**names))
    commit = world.upstream.commit[:12]
    assert summary == f"sample: all 3 files are those of v1, commit {commit}"
    assert (result.code, result.err) == (0, "")
    assert missing_files(world.lock, world.store) == []
    assert read_provenance(world.upstream, world.store).source == serves


def test_source_that_differs_in_one_file_leaves_nothing_behind(world):
    world.spoil("installed")
    world.lose("git")
    world.spoil("package")
    with pytest.raises(SourceError) as caught:
        fetch_all(world)
    site = {"site": world.site}
    message = str(caught.value)
    assert "sample: 3 files are not in the cache and no source could" in message
    for reason in (INSTALLED_DIFFERS.format(**site), PACKAGE_DIFFERS):
        assert f"    {reason.removeprefix('sample: not from ')}\n" in message
    assert "readerkit fetch sample --source PATH" in message
    assert f"pip install {NAME}=={VERSION}" in message
    assert not (world.store.root / "blobs").exists()
    assert read_provenance(world.upstream, world.store) is None


def test_nothing_served_is_one_message_and_a_failure(world, capsys):
    for source in ("installed", "git", "package"):
        world.lose(source)
    result = run(capsys, "fetch", "sample", "--book", str(world.book))
    assert result.code == 1
    assert result.err.startswith("readerkit: sample: 3 files are not in the cache and")
    for source in ("installed", "git", "package"):
        assert f"    {source}: " in result.err
    assert result.out == ""  # each reason is told once


@pytest.mark.parametrize("source", ["installed", "git", "package"])
def test_only_the_chosen_source_is_asked(source, world, capsys):
    result = run(
        capsys, "fetch", "sample", "--source", source, "--book", str(world.book)
    )
    assert result.code == 0
    assert "not from" not in result.out
    assert read_provenance(world.upstream, world.store).source == source
    assert (world.asked != []) is (source == "package")


def test_chosen_source_that_fails_is_not_replaced(world, capsys):
    world.lose("installed")
    result = run(
        capsys, "fetch", "sample", "--source", "installed", "--book", str(world.book)
    )
    assert result.code == 1
    assert "not from git" not in result.out
    assert not (world.store.root / "blobs").exists()


def test_json_is_all_that_is_printed(world, capsys):
    world.lose("installed")
    result = run(capsys, "fetch", "--json", "--book", str(world.book))
    (fetched,) = json.loads(result.out)
    came_from = fetched.pop("came_from")
    assert fetched == {
        "upstream": "sample",
        "commit": world.upstream.commit,
        "files": 3,
        "fetched": 3,
    }
    assert came_from["source"] == "git"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", came_from["when"])


@pytest.mark.parametrize("kind", ["directory", "repository"])
def test_folder_of_the_user_is_verified_too(kind, world, capsys):
    folder = world.site if kind == "directory" else world.repository
    arguments = ("fetch", "sample", "--source", str(folder), "--book", str(world.book))
    assert run(capsys, *arguments).code == 0
    assert missing_files(world.lock, world.store) == []
    shutil.rmtree(world.store.root)
    world.spoil("installed")
    result = run(capsys, *arguments)
    # A work tree may be edited: what counts is the commit.
    assert result.code == (1 if kind == "directory" else 0)
    assert (missing_files(world.lock, world.store) != []) is (kind == "directory")


# --- a moved tag ---


def test_moved_tag_ends_the_fetch_and_no_other_source_is_asked(world, capsys):
    world.lose("installed")
    git(world.repository, "commit", "--quiet", "--allow-empty", "--message=later")
    git(world.repository, "tag", "--force", "v1")
    moved = git(world.repository, "rev-parse", "HEAD")
    result = run(capsys, "fetch", "sample", "--book", str(world.book))
    assert result.code == 1
    assert f"tag v1 of {world.upstream.url} has moved: got {moved}" in result.err
    assert f"expected {world.upstream.commit}" in result.err
    assert world.asked == []
    assert not (world.store.root / "blobs").exists()
    with pytest.raises(MovedTagError):
        list_files(
            world.upstream, world.store, sources=("git", "package"), report=print
        )
    assert world.asked == []


# --- the cache ---


def test_what_is_in_the_cache_is_asked_of_nobody(world, capsys):
    fetch_all(world)
    for source in ("installed", "git", "package"):
        world.lose(source)
    result = run(capsys, "fetch", "sample", "--book", str(world.book))
    assert result.code == 0
    assert result.out.startswith("sample: 3 files in the cache, first from installed ")
    assert fetch_all(world) == []


def test_flipped_bit_is_fetched_again_and_nothing_else_is(world):
    fetch_all(world, sources=("git",))
    blob = world.lock.files["fakelib/a.py"]
    path = world.store.path(blob)
    data = bytearray(path.read_bytes())
    data[0] ^= 1
    path.write_bytes(data)
    origin = f"git {world.upstream.url} at {world.upstream.commit[:12]}"
    assert fetch_all(world, sources=("git",)) == [f"sample: 1 file from {origin}"]
    assert world.store.read(blob) == FILES["fakelib/a.py"]


def licence_of(world) -> bytes:
    [kept] = (world.store.root / "served").glob("*.licence")
    return kept.read_bytes()


def test_licence_text_is_kept_where_the_source_carries_it(world):
    fetch_all(world, sources=("git",))
    assert licence_of(world) == LICENCE
    world.store.path(world.lock.files["fakelib/a.py"]).unlink()
    fetch_all(world, sources=("installed",))  # which carries none
    assert licence_of(world) == LICENCE


# --- what is missing on this machine ---


def test_missing_git_is_a_reason_and_the_next_source_serves(
    world, capsys, monkeypatch, tmp_path
):
    world.lose("installed")
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    result = run(capsys, "fetch", "sample", "--book", str(world.book))
    assert result.code == 0
    reason = "sample: not from git: git is not installed, or not on PATH"
    assert reason in result.out.splitlines()
    assert read_provenance(world.upstream, world.store).source == "package"


def test_silent_server_is_a_reason_and_the_next_source_serves(world, monkeypatch):
    monkeypatch.setattr(readerkit_git, "PROBE_SECONDS", 0.2)
    with silent_server() as port:
        far = structs.replace(world.upstream, url=f"git://127.0.0.1:{port}/sample")
        lines = fetch_all(replace(world, upstream=far), sources=("git", "package"))
    assert lines == [
        "sample: not from git: git ls-remote: no answer within 0.2 s",
        SERVED["package"],
    ]


def test_dropped_connection_is_a_reason_and_the_next_source_serves(world):
    with git_server(world.repository.parent, {3: 60}) as server:
        far = structs.replace(world.upstream, url=server.url())
        lines = fetch_all(replace(world, upstream=far), sources=("git", "installed"))
    assert re.fullmatch(r"sample: not from git: git fetch: \S[^\n]*", lines[0])
    assert lines[1:] == [SERVED["installed"].format(site=world.site)]


def start(*arguments: str, prefix: tuple[str, ...] = ()):
    return subprocess.Popen(
        [*prefix, sys.executable, "-m", "readerkit", *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("source", ["directory", "git"])
def test_full_disk_is_one_clear_error(source, tmp_path):
    book = make_book(tmp_path, files={"lib/large.py": "# large\n" * 20_000})
    cache = tmp_path / "cache"
    cache.mkdir()
    chosen = [] if source == "git" else ["--source", str(unversioned(book.repository))]
    arguments = ("fetch", "sample", *chosen, "--book", str(book.root))
    ended = start(*arguments, prefix=on_full_disk(cache))
    _, err = ended.communicate(timeout=WAIT_S)
    assert ended.returncode == 1
    assert err.startswith("readerkit: ")
    assert "Traceback" not in err
    assert re.search("No space left on device|File too large", err)
    assert missing_files(lock_of(book), BlobStore(cache)) != []


def unversioned(repository: Path) -> Path:
    copy = repository.parent / "copy"
    shutil.copytree(repository, copy, ignore=shutil.ignore_patterns(".git"))
    return copy


def lock_of(book) -> Lock:
    return Lock.parse(book.path("sample.lock").read_text(), "sample.lock")


def test_unwritable_cache_is_one_clear_error(world, capsys, monkeypatch):
    monkeypatch.setenv("READERKIT_CACHE", "/dev/null/cache")
    result = run(capsys, "fetch", "sample", "--book", str(world.book))
    assert result.code == 1
    assert result.err.startswith("readerkit: cannot ")
    assert "READERKIT_CACHE" in result.err


def test_a_whole_cache_need_not_be_one_that_can_be_written(world, capsys):
    fetch = ("fetch", "sample", "--book", str(world.book))
    assert run(capsys, *fetch).code == 0
    lock = world.store.root / "fetch.lock"
    lock.unlink()
    lock.mkdir()  # whoever runs this, root too, cannot open it
    assert run(capsys, *fetch).code == 0
    next((world.store.root / "blobs").glob("*/*")).unlink()
    assert run(capsys, *fetch).code == 1


# --- a fetch that is killed, and two at once ---


def served_book(tmp_path: Path, server) -> Path:
    """Make a book on ``sample``, whose address is the server's."""
    files = {f"lib/f{number}.py": f"x = {number}\n" * 500 for number in range(20)}
    return make_book(tmp_path, files=files, url=server.url()).root


@pytest.mark.parametrize("killed", ["reader", "reader-and-git"])
@pytest.mark.parametrize(
    "connection, let_through",
    [
        pytest.param(1, 50, id="in-the-tags"),
        pytest.param(2, 300, id="in-the-commit"),
        pytest.param(3, 300, id="in-the-blobs"),
    ],
)
def test_killed_fetch_looks_unfinished_and_the_next_one_succeeds(
    connection, let_through, killed, tmp_path, capsys
):
    limits = {connection: let_through}
    with git_server(tmp_path / "served", limits, hold=True) as server:
        book = served_book(tmp_path, server)
        arguments = ("fetch", "sample", "--book", str(book))
        store = BlobStore(tmp_path / "cache")
        with start(*arguments) as reader:
            assert server.stalled.wait(WAIT_S)
            children = children_of(reader.pid)
            assert children
            for process in [reader.pid, *(children if "git" in killed else [])]:
                os.kill(process, signal.SIGKILL)
            out, err = reader.communicate(timeout=WAIT_S)
        assert reader.returncode == -signal.SIGKILL
        wait_for(lambda: is_gone(children[0]), WAIT_S)  # git ends with whom it is for
        assert "files from" not in out
        assert err == ""
        lock = Lock.parse((book / "annotations/sample.lock").read_text(), "sample.lock")
        assert len(missing_files(lock, store)) == 21
        assert not (store.root / "served").exists()
        # What is left of the first may still hold its connection open.
        result = run(capsys, *arguments)
        assert "sample: 21 files from git " in result.out
        assert result.code == 0
        assert missing_files(lock, store) == []
        if "git" in killed:
            assert files_below(store.root / "git") == []


def children_of(pid: int) -> list[int]:
    """Return the processes below one."""
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    direct = [int(child) for child in listed]
    return [*direct, *(deeper for child in direct for deeper in children_of(child))]


def test_interrupted_fetch_says_so_and_takes_git_with_it(tmp_path):
    with git_server(tmp_path / "served", {2: 300}, hold=True) as server:
        book = served_book(tmp_path, server)
        with start("fetch", "sample", "--book", str(book)) as reader:
            assert server.stalled.wait(WAIT_S)
            children = children_of(reader.pid)
            reader.send_signal(signal.SIGINT)
            _, err = reader.communicate(timeout=WAIT_S)
    assert reader.returncode == 130
    assert err.strip() == "readerkit: interrupted"
    assert children
    assert not any(Path(f"/proc/{child}").exists() for child in children)


class DyingStore(BlobStore):
    """A store whose process is killed at its third write."""

    def write(self, data: bytes) -> str:
        if len(files_below(self.root / "blobs")) == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().write(data)


DIE_WHILE_KEEPING = """
import sys
from tests.readerkit.upstreams.test_fetch import *
site, cache, commit = sys.argv[1:]
upstream = Upstream("sample", "Sample", ("fakelib/**/*.py",), commit=commit)
blobs = {path: blob_id(data) for path, data in FILES.items()}
store = DyingStore(Path(cache))
fetch(upstream, Lock(commit, blobs), store, sources=(site,), report=print)
"""


def test_fetch_killed_while_it_keeps_files_goes_on_where_it_was(world):
    arguments = (world.site, world.store.root, world.upstream.commit)
    done = subprocess.run(
        [sys.executable, "-c", DIE_WHILE_KEEPING, *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert len(missing_files(world.lock, world.store)) == 1
    assert read_provenance(world.upstream, world.store) is None
    origin = f"git {world.upstream.url} at {world.upstream.commit[:12]}"
    assert fetch_all(world, sources=("git",)) == [f"sample: 1 file from {origin}"]
    assert missing_files(world.lock, world.store) == []


def test_two_fetches_at_once_fetch_once(tmp_path, monkeypatch):
    with git_server(tmp_path / "served", {1: 50}, hold=True) as server:
        book = served_book(tmp_path, server)
        arguments = ("fetch", "sample", "--book", str(book))
        first = start(*arguments)
        assert server.stalled.wait(WAIT_S)
        # While the first one fetches, nobody else gets in.
        monkeypatch.setattr(store_module, "LOCK_WAIT_SECONDS", 0)
        store = BlobStore(tmp_path / "cache")
        with pytest.raises(StoreError, match="another process"), store.locked():
            raise AssertionError("two processes fetch at once")
        first.kill()
        first.communicate()
        server.limits.clear()
        before = server.connections
        both = [start(*arguments) for _ in range(2)]
        outputs = [process.communicate(timeout=WAIT_S)[0] for process in both]
        assert [process.returncode for process in both] == [0, 0]
        assert server.connections == before + 3
    summary = r"sample: all 21 files are those of v1, commit [0-9a-f]{12}\n"
    assert all(re.search(summary, output) for output in outputs)
    assert sum("21 files from git" in output for output in outputs) == 1


# --- locks ---


def locked_files(book: Path) -> dict[str, str]:
    text = (book / "annotations" / "sample.lock").read_text()
    return dict(Lock.parse(text, "sample.lock").files)


def test_lock_is_made_of_the_pinned_commit(world, capsys):
    (world.book / "annotations" / "sample.lock").unlink()
    result = run(capsys, "fetch", "sample", "--update-lock", "--book", str(world.book))
    assert result.code == 0
    assert "does not name its commit" not in result.out
    assert locked_files(world.book) == world.lock.files
    assert missing_files(world.lock, world.store) == []
    again = run(capsys, "fetch", "sample", "--update-lock", "--book", str(world.book))
    assert again.code == 0
    assert "wrote" not in again.out


def test_lock_of_bytes_without_a_commit_says_so(world, capsys):
    world.lose("git")
    world.spoil("installed")
    result = run(capsys, "fetch", "sample", "--update-lock", "--book", str(world.book))
    assert result.code == 0
    assert "does not name its commit: compare the blob ids with" in result.out
    assert locked_files(world.book)["fakelib/a.py"] == blob_id(OTHER)


def test_lock_of_nothing_is_not_written(world, capsys, tmp_path):
    (tmp_path / "bare").mkdir()
    before = (world.book / "annotations" / "sample.lock").read_bytes()
    chosen = ("--source", str(tmp_path / "bare"))
    result = run(
        capsys, "fetch", "sample", "--update-lock", *chosen, "--book", str(world.book)
    )
    assert result.code == 1
    assert "it has none of the included paths" in result.err
    assert (world.book / "annotations" / "sample.lock").read_bytes() == before


@pytest.mark.parametrize(
    "commit",
    [
        pytest.param("v1", id="tag"),
        pytest.param("main", id="branch"),
        pytest.param("0123456", id="short"),
        pytest.param("0" * 39, id="one-digit-short"),
        pytest.param("0" * 64, id="longer"),
        pytest.param("A" * 40, id="capitals"),
        pytest.param("--upload-pack=x", id="option"),
    ],
)
def test_only_a_full_commit_id_is_locked(commit, world, capsys):
    path = world.book / "annotations" / "upstreams.yaml"
    path.write_text(path.read_text().replace(world.upstream.commit, commit))
    result = run(capsys, "fetch", "sample", "--update-lock", "--book", str(world.book))
    assert result.code == 1
    assert re.search(r"upstreams\.yaml:1:\d+: .*commit", result.err)


@pytest.mark.parametrize(
    "lock, got",
    [
        pytest.param(None, "got no lock", id="no-lock"),
        pytest.param(
            Lock("f" * 40, {"fakelib/a.py": "0" * 40}), f"of {'f' * 40}", id="another"
        ),
    ],
)
def test_lock_that_is_not_of_the_pin_is_one_clear_error(lock, got, world, capsys):
    path = world.book / "annotations" / "sample.lock"
    path.unlink()
    if lock:
        path.write_text(lock.to_text())
    result = run(capsys, "fetch", "sample", "--book", str(world.book))
    assert result.code == 1
    assert got in result.err
    assert "readerkit fetch sample --update-lock" in result.err


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"name": "x @ file:///tmp/evil"}, id="address"),
        pytest.param({"name": "./evil"}, id="folder"),
        pytest.param({"name": "--index-url=http://127.0.0.1:9/"}, id="option"),
        pytest.param({"version": "1.0 --pre"}, id="option-in-the-version"),
    ],
)
def test_package_that_is_no_name_never_reaches_pip(change, world, capsys):
    path = world.book / "annotations" / "upstreams.yaml"
    (entry,) = json.loads(path.read_text())
    entry["package"] |= change
    path.write_text(json.dumps([entry]))
    result = run(
        capsys, "fetch", "sample", "--source", "package", "--book", str(world.book)
    )
    assert result.code == 1
    assert re.search(r"upstreams\.yaml:1:\d+: ", result.err)
    assert world.asked == []

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from readerkit.errors import StoreError
from readerkit.upstreams import store as store_module
from readerkit.upstreams.store import BlobStore, blob_id, write_atomically
from tests.helpers import ROOT, WAIT_S, git
from tests.readerkit.upstreams.full_disk import on_full_disk

BYTES = [
    pytest.param(b"", id="empty"),
    pytest.param(b"x = 1\n", id="plain"),
    pytest.param(b"x = 1\r\ny = 2\r\n", id="crlf"),
    pytest.param(b"\xef\xbb\xbfx = 1", id="bom-and-no-final-newline"),
    pytest.param(b"\xff\xfe\x00bytes\x00", id="not-text"),
    pytest.param(b"$Format:%H$\n", id="export-subst"),
    pytest.param(bytes(range(256)) * 9000, id="two-megabytes"),
]


def python(code: str, *arguments: object, prefix: tuple[str, ...] = ()):
    """Run a script that may import readerkit, in a process of its own."""
    return subprocess.run(
        [*prefix, sys.executable, "-c", code, *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )


def files_below(folder: Path) -> list[str]:
    return sorted(
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()
    )


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "cache")


@pytest.mark.parametrize("data", BYTES)
def test_id_is_the_one_that_git_gives(data, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(data)
    assert blob_id(data) == git(tmp_path, "hash-object", "--no-filters", str(path))


@pytest.mark.parametrize("data", BYTES)
def test_what_is_written_is_read_back_under_its_id(data, store):
    blob = store.write(data)
    assert blob == blob_id(data)
    assert store.has_file(blob)
    assert BlobStore(store.root).read(blob) == data


def test_unknown_blob_is_missing(store):
    assert store.read("0" * 40) is None
    assert not store.has_file("0" * 40)


@pytest.mark.parametrize(
    "alter",
    [
        pytest.param(lambda data: data[:7] + b"\x01" + data[8:], id="flipped-bits"),
        pytest.param(lambda data: data[:-1], id="truncated"),
        pytest.param(lambda data: b"", id="emptied"),
        pytest.param(lambda data: data + b"\n", id="appended"),
        pytest.param(lambda data: data.replace(b"\n", b"\r\n"), id="line-ends"),
    ],
)
def test_altered_blob_is_missing_and_can_be_written_anew(alter, store):
    data = b"x = 1\ny = 2\n"
    blob = store.write(data)
    store.path(blob).write_bytes(alter(data))
    assert store.read(blob) is None
    assert not store.has_file(blob)
    assert store.write(data) == blob
    assert store.read(blob) == data


def test_another_blob_under_an_id_is_not_that_blob(store):
    blob, other = store.write(b"one"), store.write(b"two")
    store.path(blob).write_bytes(store.path(other).read_bytes())
    assert store.read(blob) is None
    assert store.read(other) == b"two"


def test_a_folder_in_the_place_of_a_blob_is_one_clear_error(store):
    store.path("ab" * 20).mkdir(parents=True)
    with pytest.raises(StoreError, match=r"cannot read .*: Is a directory: .*CACHE"):
        store.read("ab" * 20)


def test_write_replaces_a_file_and_leaves_nothing_beside_it(tmp_path):
    write_atomically(tmp_path / "a" / "file", b"old")
    write_atomically(tmp_path / "a" / "file", b"new")
    assert (tmp_path / "a" / "file").read_bytes() == b"new"
    assert files_below(tmp_path) == ["a/file"]


def test_a_write_that_fails_leaves_no_folder_behind(tmp_path):
    (tmp_path / "there").mkdir()
    with pytest.raises(StoreError):
        write_atomically(tmp_path / "there/new/deep" / ("x" * 300), b"data")
    assert [*tmp_path.rglob("*")] == [tmp_path / "there"]


def test_written_file_can_be_read_by_others(tmp_path):
    write_atomically(tmp_path / "file", b"")
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o644


def test_a_file_that_somebody_named_is_written_where_its_link_leads(tmp_path):
    link, target = tmp_path / "link", tmp_path / "target"
    link.symlink_to(target)
    write_atomically(link, b"new", named=True)
    assert link.is_symlink() and target.read_bytes() == b"new"
    device = tmp_path / "pipe"
    os.mkfifo(device)
    with pytest.raises(StoreError, match="it is a device: name a file"):
        write_atomically(device, b"new", named=True)
    assert device.is_fifo()


def test_write_replaces_a_link_and_not_what_it_points_at(tmp_path):
    (tmp_path / "victim").write_bytes(b"mine")
    (tmp_path / "file").symlink_to(tmp_path / "victim")
    write_atomically(tmp_path / "file", b"new")
    assert (tmp_path / "victim").read_bytes() == b"mine"
    assert (tmp_path / "file").read_bytes() == b"new"


@pytest.mark.parametrize("root", ["/dev/null/cache", "/proc/cache"])
def test_unwritable_folder_is_one_clear_error(root):
    with pytest.raises(StoreError, match=r"cannot write .*: .*READERKIT_CACHE"):
        BlobStore(Path(root)).write(b"data")
    with (
        pytest.raises(StoreError, match=r"cannot use the cache .*READERKIT_CACHE"),
        BlobStore(Path(root)).locked(),
    ):
        raise AssertionError("locked a folder that cannot be")


WRITE_TOO_MUCH = """
import sys
from pathlib import Path
from readerkit.errors import StoreError
from readerkit.upstreams.store import BlobStore, write_atomically
store = BlobStore(Path(sys.argv[1]))
write_atomically(store.root / "note", b"old")
much = b"n" * 1_000_000
for name, more in (("note", {}), ("mine", {"private": True})):
    try:
        write_atomically(store.root / name, much, **more)
    except StoreError as error:
        print(error)
try:
    store.write(much)
except StoreError as error:
    print(error)
print(sorted(p.name for p in store.root.rglob("*") if p.is_file()))
print((store.root / "note").read_bytes())
"""


def test_full_disk_is_one_clear_error_and_leaves_the_old_file_whole(store):
    store.root.mkdir()
    done = python(WRITE_TOO_MUCH, store.root, prefix=on_full_disk(store.root))
    *errors, files, note = done.stdout.splitlines()
    assert done.stderr == ""
    for error, name in zip(
        errors, ("note", "mine", blob_id(b"n" * 1_000_000)[2:]), strict=True
    ):
        wanted = rf"cannot write {store.root}/.*{name}: (No space left|File too large)"
        assert re.match(wanted, error)
        assert "1,000,000 bytes free" in error
    assert [re.findall(r"READERKIT_\w+", error) for error in errors] == [
        [],  # of a book, say: no other folder would do
        ["READERKIT_DATA"],
        ["READERKIT_CACHE"],
    ]
    assert files == "['note']"
    assert note == "b'old'"


# The kernel ends the process in the middle of its write, at the 1,000th byte.
DIE_WHILE_WRITING = """
import resource, signal, sys
from pathlib import Path
from readerkit.upstreams.store import BlobStore, write_atomically
store = BlobStore(Path(sys.argv[1]))
write_atomically(store.root / "note", b"old")
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
if sys.argv[2] == "note":
    write_atomically(store.root / "note", b"n" * 100_000)
else:
    store.write(b"n" * 100_000)
"""


@pytest.mark.parametrize("what", ["note", "blob"])
def test_process_killed_while_writing_leaves_the_old_state(what, store):
    done = python(DIE_WHILE_WRITING, store.root, what)
    assert done.returncode == -signal.SIGXFSZ
    blob = blob_id(b"n" * 100_000)
    assert (store.root / "note").read_bytes() == b"old"
    assert not store.has_file(blob)
    assert store.read(blob) is None
    assert store.write(b"n" * 100_000) == blob
    assert store.read(blob) == b"n" * 100_000


HOLD_LOCK = """
import sys
from pathlib import Path
from readerkit.upstreams.store import BlobStore
with BlobStore(Path(sys.argv[1])).locked():
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("end", ["killed", "closed"])
def test_lock_keeps_a_second_process_out_until_the_first_ends(end, store, monkeypatch):
    monkeypatch.setattr(store_module, "LOCK_WAIT_SECONDS", 0.05)
    with subprocess.Popen(
        [sys.executable, "-c", HOLD_LOCK, str(store.root)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout.readline() == b"held\n"
        with (
            pytest.raises(StoreError, match=r"another process has held .*fetch\.lock"),
            store.locked(),
        ):
            raise AssertionError("two processes hold one lock")
        if end == "killed":
            os.kill(holder.pid, signal.SIGKILL)
        else:
            holder.stdin.close()
        holder.wait(WAIT_S)
    with store.locked():
        pass


def test_lock_is_free_again_after_a_failure_inside(store):
    # An error of the work is not one of the cache.
    for error in (KeyError, FileNotFoundError):
        with pytest.raises(error), store.locked():
            raise error
    with store.locked():
        pass

import pytest

from readerkit.errors import SourceError
from readerkit.upstreams.on_disk import check_files, write_files
from readerkit.upstreams.store import blob_id

FILES = {"pkg/a.py": blob_id(b"a = 1\n")}


@pytest.fixture
def root(tmp_path):
    write_files(tmp_path, FILES, {"pkg/a.py": b"a = 1\n"}.__getitem__)
    return tmp_path


def test_written_files_are_the_locked_ones(root):
    check_files("pkg", root, FILES)


def test_an_altered_file_is_refused_and_named(root):
    (root / "pkg/a.py").write_bytes(b"a = 2\n")
    with pytest.raises(SourceError, match=r"1 of 1 files differ, first: pkg/a\.py"):
        check_files("pkg", root, FILES)


def test_a_missing_file_is_refused(root):
    (root / "pkg/a.py").unlink()
    with pytest.raises(SourceError, match="is missing"):
        check_files("pkg", root, FILES)


def test_a_disk_that_keeps_nothing_is_refused(tmp_path):
    (tmp_path / "a.py").symlink_to("/dev/null")
    with pytest.raises(SourceError, match="read back"):
        write_files(tmp_path, ["a.py"], {"a.py": b"a = 1\n"}.__getitem__)

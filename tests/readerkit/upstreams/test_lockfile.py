import json

import pytest

from readerkit.errors import ContentError
from readerkit.upstreams import Lock
from readerkit.upstreams.store import blob_id
from tests.helpers import run, write_files

COMMIT = "0123456789abcdef0123456789abcdef01234567"
FILES = {"lib/b.py": blob_id(b"b"), "lib/a.py": blob_id(b"a")}

# Of "blob path" lines, sorted by path: made with sort and sha256sum.
DIGEST = "cf45bb4ea069f88a6347867c806324d99e9b08087918197b63896343dd65dd19"


def faults(text: str) -> str:
    with pytest.raises(ContentError) as caught:
        Lock.parse(text, "sample.lock")
    return str(caught.value)


def lock_text(**changed) -> str:
    return json.dumps({**json.loads(Lock(COMMIT, FILES).to_text()), **changed})


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({}, id="no-files"),
        pytest.param(FILES, id="files"),
        pytest.param({'a "b" %s \u00e9 c.py': blob_id(b"")}, id="quotes-and-spaces"),
        pytest.param({"módulo/日本.py": blob_id(b"")}, id="not-ascii"),
        pytest.param({"lib/\udcff.py": blob_id(b"")}, id="not-utf-8"),
    ],
)
def test_what_was_written_is_read_back(files):
    lock = Lock(COMMIT, files)
    data = lock.to_text().encode()
    assert Lock.parse(data.decode(), "sample.lock") == lock


def test_text_is_sorted_with_a_line_for_each_file():
    assert Lock(COMMIT, FILES).to_text().splitlines() == [
        "{",
        '"format": 1,',
        f'"commit": "{COMMIT}",',
        f'"files_sha256": "{DIGEST}",',
        '"files": {',
        f'"lib/a.py": "{FILES["lib/a.py"]}",',
        f'"lib/b.py": "{FILES["lib/b.py"]}"',
        "},",
        '"anchors": {}',
        "}",
    ]


def test_text_of_equal_locks_is_equal():
    reordered = dict(sorted(FILES.items()))
    assert Lock(COMMIT, FILES).to_text() == Lock(COMMIT, reordered).to_text()


def test_one_changed_file_changes_its_line_and_the_digest():
    before = Lock(COMMIT, FILES).to_text().splitlines()
    after = Lock(COMMIT, {**FILES, "lib/b.py": blob_id(b"c")}).to_text().splitlines()
    changed = [new for old, new in zip(before, after, strict=True) if old != new]
    assert changed[0].startswith('"files_sha256": ')
    assert changed[1:] == [
        f'"lib/b.py": "{blob_id(b"c")}"',
    ]


def test_other_files_keep_what_else_the_lock_holds():
    lock = Lock(COMMIT, FILES, {"an-id": object()})
    other = lock.with_files("f" * 40, {})
    assert other.commit == "f" * 40
    assert other.files == {}
    assert other.anchors is lock.anchors
    assert lock.files == FILES


@pytest.mark.parametrize(
    "text, message",
    [
        pytest.param("", "sample.lock:1:1: not a readable lock: ", id="empty"),
        pytest.param("[]", "sample.lock:1:1: not a readable lock: ", id="a-list"),
        pytest.param("null", "sample.lock:1:1: not a readable lock: ", id="nothing"),
        pytest.param(
            '{\n"format": 1,\n<<<<<<< HEAD\n',
            "sample.lock:3:1: not a readable lock: ",
            id="merge-conflict-names-its-line",
        ),
        pytest.param(
            Lock(COMMIT, FILES).to_text()[:190],
            "sample.lock:6:1: not a readable lock: ",
            id="cut-off",
        ),
        pytest.param("[" * 100_000, "not a readable lock: ", id="deep"),
        pytest.param(
            lock_text(format=2),
            "sample.lock:1:1: a lock of another version: got format 2, expected 1",
            id="later-format",
        ),
        pytest.param("{}", "got no key 'format'", id="no-format"),
        pytest.param('{"format": 1}', "got no key 'files'", id="no-files"),
        pytest.param(lock_text(files=[]), "not a readable lock: ", id="files-list"),
        pytest.param(
            lock_text(files={"a.py": None}), "not a readable lock: ", id="no-blob"
        ),
        pytest.param(lock_text(anchors=[]), "not a readable lock: ", id="anchors-list"),
        pytest.param(
            lock_text(anchors={"x": {}}), "got no key 'fingerprint'", id="no-anchor"
        ),
        pytest.param(
            lock_text(files={"lib/a.py": "../../../../victim"}),
            "lib/a.py: blob id '../../../../victim': expected 40 digits",
            id="id-that-leads-out-of-the-cache",
        ),
        pytest.param(
            lock_text(files={"lib/a.py": "ab" * 20 + "\n"}),
            "lib/a.py: blob id 'abab",
            id="id-with-a-newline",
        ),
        pytest.param(
            lock_text(files={"lib/a.py": FILES["lib/a.py"]}),
            "got a list of 1 file whose digest is not the one beside it",
            id="a-row-removed",
        ),
        pytest.param(
            lock_text(files={"lib/../../b.py": FILES["lib/b.py"]}),
            "got path 'lib/../../b.py' leaves its upstream: expected a path inside",
            id="path-that-leads-out",
        ),
        pytest.param(
            lock_text(files={"/lib/b.py": FILES["lib/b.py"]}),
            "got path '/lib/b.py' is absolute or not a POSIX path: expected",
            id="absolute-path",
        ),
        pytest.param(
            lock_text(files_sha256=None),
            "got a list of 2 files without 'files_sha256'",
            id="no-digest",
        ),
        pytest.param(
            lock_text(files={"lib/a.py": "AB" * 20}),
            "lib/a.py: blob id 'ABAB",
            id="id-in-capitals",
        ),
    ],
)
def test_unreadable_lock_is_one_fault_that_says_how_to_mend_it(text, message):
    fault = faults(text)
    assert message in fault
    assert "\n" not in fault
    assert "--update-lock" in fault or "another version" in fault


def test_hostile_lock_reaches_no_file_outside_the_cache(capsys, tmp_path):
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    entry = (
        "- {name: sample, title: S, url: 'https://127.0.0.1:9/x', "
        f"commit: {COMMIT}, include: ['*.py'], "
        "licence: {spdx: MIT, path: LICENSE, holder: N}}\n"
    )
    blobs = {"a.py": f"..{victim}"}
    write_files(
        tmp_path / "book" / "annotations",
        {
            "upstreams.yaml": entry,
            "references.yaml": "[]\n",
            "concepts.yaml": "[]\n",
            "sample.lock": Lock(COMMIT, blobs).to_text(),
        },
    )
    result = run(capsys, "fetch", "sample", "--book", str(tmp_path / "book"))
    assert result.code == 1
    assert "sample.lock:1:1: not a readable lock" in result.err
    assert victim.read_bytes() == b"mine"

import os
import random
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from readerkit.errors import SourceError
from readerkit.upstreams import git_commands
from readerkit.upstreams.store import blob_id
from tests.helpers import WAIT_S, make_repository, write_files
from tests.helpers import git as run_git
from tests.readerkit.upstreams.servers import (
    deaf_server,
    git_server,
    http_server,
    silent_server,
)

pytestmark = pytest.mark.sampled

OLD = "x = 'the old version of a file'\n"
FILES = {
    "lib/a.py": "x = 1\n",
    "lib/b/c.py": b"y = 2\r\nz = '\xff'\r\n",
    "lib/subst.py": "commit = '$Format:%H$'\n",
    "lib/empty.py": "",
    "lib/large.py": random.Random(1).randbytes(10_000).hex(),
    'lib/mit leer\t"ü"\n.py': "odd = 'name'\n",
    "docs/large.txt": "outside of what is included\n" * 5000,
    ".gitattributes": "*.py text eol=crlf\nlib/subst.py export-subst\n",
    "LICENSE": "Do as you like.\n",
}
INCLUDED = [path for path in FILES if path.startswith("lib/")]


def content(path: str) -> bytes:
    data = FILES[path]
    return data.encode() if isinstance(data, str) else data


@pytest.fixture(scope="module")
def served(tmp_path_factory) -> Path:
    """A folder with the repository ``sample``: two commits, links, a submodule."""
    parent = tmp_path_factory.mktemp("served")
    repository = parent / "sample"
    make_repository(repository, {"lib/a.py": OLD, "gone.py": "gone = 1\n"}, tag="v0")
    (repository / "gone.py").unlink()
    write_files(repository, FILES)
    (repository / "lib" / "link.py").symlink_to("/etc/passwd")
    run_git(repository, "add", "--all")
    # Kept as they are: the index, not the work tree, is what the attributes spared.
    for path in INCLUDED:
        id_ = subprocess.run(
            ["git", "-C", str(repository), "hash-object", "-w", "--stdin"],
            input=content(path),
            capture_output=True,
            check=True,
        ).stdout.decode()
        info = f"100644,{id_.strip()},{path}"
        run_git(repository, "update-index", "--add", "--cacheinfo", info)
    run_git(
        repository, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},sub"
    )
    run_git(repository, "commit", "--quiet", "--message=second")
    run_git(repository, "tag", "v1")
    return parent


@pytest.fixture
def commit(served) -> str:
    return run_git(served / "sample", "rev-parse", "v1^{commit}")


@pytest.fixture
def repository(tmp_path) -> Path:
    return tmp_path / "cache" / "sample.git"


def fetch_included(repository: Path, url: str, commit: str) -> dict[str, bytes]:
    git_commands.create_repository(repository, url)
    assert git_commands.remote_tag(repository, "v1") == commit
    git_commands.fetch_commit(repository, commit)
    tree = git_commands.tree(repository, commit).blobs
    wanted = {path: tree[path] for path in INCLUDED}
    git_commands.fetch_blobs(repository, wanted.values())
    blobs = git_commands.read_blobs(repository, wanted.values())
    return {path: blobs[blob] for path, blob in wanted.items()}


def objects(repository: Path) -> dict[str, str]:
    """Return id and type of every object that is really there."""
    rows = run_git(repository, "cat-file", "--batch-all-objects", "--batch-check")
    return {row.split()[0]: row.split()[1] for row in rows.splitlines()}


def trees(repository: Path, commit: str) -> set[str]:
    rows = run_git(repository, "ls-tree", "-r", "-t", commit).splitlines()
    return {row.split()[2] for row in rows if row.split()[1] == "tree"} | {
        run_git(repository, "rev-parse", f"{commit}^{{tree}}")
    }


# --- what is fetched ---


@pytest.mark.parametrize("transport", ["file", "daemon"])
def test_only_the_pinned_commit_and_the_asked_blobs_arrive(
    transport, served, commit, repository
):
    sample = served / "sample"
    with git_server(served) as server:
        url = server.url() if transport == "daemon" else sample.as_uri()
        files = fetch_included(repository, url, commit)
    assert files == {path: content(path) for path in INCLUDED}
    wanted = {blob_id(data) for data in files.values()}
    there = objects(repository)
    assert {id_ for id_, kind in there.items() if kind == "blob"} == wanted
    assert {id_ for id_, kind in there.items() if kind == "commit"} == {commit}
    expected_trees = trees(sample, commit)
    assert {id_ for id_, kind in there.items() if kind == "tree"} == expected_trees
    assert len(there) == len(wanted) + 1 + len(expected_trees)


def test_blobs_come_in_one_connection(served, commit, repository):
    with git_server(served) as server:
        fetch_included(repository, server.url(), commit)
        # The tag, the commit with its trees, the blobs.
        assert server.connections == 3
        large = len(content("lib/large.py")) // 2
        assert server.sent[0] + server.sent[1] < large < server.sent[2]


def test_nothing_but_objects_is_left_in_the_repository(served, commit, repository):
    fetch_included(repository, (served / "sample").as_uri(), commit)
    assert run_git(repository, "for-each-ref") == ""
    assert run_git(repository, "rev-parse", "--is-bare-repository") == "true"
    names = {path.name for path in repository.iterdir()}
    assert names == {"HEAD", "config", "objects", "refs", "shallow"}


@pytest.mark.parametrize("filters", ["true", "false"])
def test_server_that_allows_little_serves_all_the_same(
    filters, served, commit, repository, tmp_path
):
    plain = tmp_path / "plain"
    run_git(served, "clone", "--quiet", "--bare", str(served / "sample"), str(plain))
    run_git(plain, "config", "uploadpack.allowFilter", filters)
    for wants in ("allowTipSHA1InWant", "allowReachableSHA1InWant"):
        run_git(plain, "config", f"uploadpack.{wants}", "false")
    with git_server(tmp_path) as server:
        files = fetch_included(repository, server.url("plain"), commit)
    assert files == {path: content(path) for path in INCLUDED}
    there = objects(repository)
    assert {id_ for id_, kind in there.items() if kind == "commit"} == {commit}
    unasked = blob_id(content("docs/large.txt"))
    assert (unasked in there) is (filters == "false")


def test_repository_is_made_once_and_follows_a_new_address(repository, served, commit):
    git_commands.create_repository(repository, "git://127.0.0.1:9/gone")
    fetch_included(repository, (served / "sample").as_uri(), commit)
    before = objects(repository)
    git_commands.create_repository(repository, (served / "sample").as_uri())
    assert objects(repository) == before


# --- tags ---


@pytest.mark.parametrize(
    "tag, commands",
    [
        pytest.param("t", ["tag t v1"], id="lightweight"),
        pytest.param("t", ["tag -a -m m t v1"], id="annotated"),
        pytest.param("t", ["tag -a -m m s v1", "tag -a -m m t s"], id="tag-of-a-tag"),
        pytest.param("a/t", ["tag a/t v1"], id="slash"),
        pytest.param("t", ["tag t v1", "branch t v0"], id="branch-of-the-same-name"),
        pytest.param("t", ["tag t v1", "tag a/refs/tags/t v0"], id="longer-name"),
    ],
)
def test_tag_names_its_commit(tag, commands, served, commit, repository, tmp_path):
    copy = tmp_path / "copy"
    run_git(served, "clone", "--quiet", "--bare", str(served / "sample"), str(copy))
    for command in commands:
        run_git(copy, *command.split())
    git_commands.create_repository(repository, copy.as_uri())
    assert git_commands.remote_tag(repository, tag) == commit


@pytest.mark.parametrize("tag", ["v", "v9", "V1", "*", "v?", "main"])
def test_tag_that_is_not_there_is_empty(tag, served, repository):
    git_commands.create_repository(repository, (served / "sample").as_uri())
    assert git_commands.remote_tag(repository, tag) == ""


# --- trees and blobs ---


def test_tree_has_regular_files_only_under_their_exact_names(
    served, commit, repository
):
    git_commands.create_repository(repository, (served / "sample").as_uri())
    git_commands.fetch_commit(repository, commit)
    tree = git_commands.tree(repository, commit)
    assert set(tree.blobs) == set(FILES)  # no link, no submodule
    assert tree.links == {"lib/link.py"}
    assert {path: tree.blobs[path] for path in INCLUDED} == {
        path: blob_id(content(path)) for path in INCLUDED
    }


def test_tree_keeps_names_that_are_not_utf8(repository, tmp_path):
    name = os.fsencode(tmp_path / "odd" / "lib") + b"/\xff.py"
    Path(os.fsdecode(name)).parent.mkdir(parents=True)
    Path(os.fsdecode(name)).write_bytes(b"x")
    commit = make_repository(tmp_path / "odd", {})
    git_commands.create_repository(repository, (tmp_path / "odd").as_uri())
    git_commands.fetch_commit(repository, commit)
    assert git_commands.tree(repository, commit).blobs == {
        "lib/\udcff.py": blob_id(b"x")
    }


def test_blob_that_was_not_fetched_is_an_error_and_is_never_asked_for(
    served, commit, repository
):
    with git_server(served) as server:
        git_commands.create_repository(repository, server.url())
        git_commands.fetch_commit(repository, commit)
        there = blob_id(content("lib/a.py"))
        git_commands.fetch_blobs(repository, [there])
        asked = blob_id(content("LICENSE"))
        with pytest.raises(SourceError, match=rf"^git cat-file: fatal: .*{asked}"):
            git_commands.read_blobs(repository, [there, asked])
        assert server.connections == 2
    assert git_commands.read_blobs(repository, [there]) == {there: content("lib/a.py")}


def test_what_is_not_a_blob_is_left_out(served, commit, repository):
    git_commands.create_repository(repository, (served / "sample").as_uri())
    git_commands.fetch_commit(repository, commit)
    assert git_commands.read_blobs(repository, [commit, f"{commit}^{{tree}}"]) == {}


# --- servers that fail ---


def test_missing_commit_is_an_error(served, repository):
    git_commands.create_repository(repository, (served / "sample").as_uri())
    with pytest.raises(SourceError, match=r"^git fetch: fatal: .*not our ref f{40}$"):
        git_commands.fetch_commit(repository, "f" * 40)


def test_missing_blob_is_an_error(served, commit, repository):
    git_commands.create_repository(repository, (served / "sample").as_uri())
    git_commands.fetch_commit(repository, commit)
    with pytest.raises(SourceError, match=r"^git fetch: fatal: .*not our ref f{40}$"):
        git_commands.fetch_blobs(repository, ["f" * 40])


@pytest.mark.parametrize(
    "connection, bytes_let_through",
    [
        pytest.param(1, 0, id="at-once"),
        pytest.param(1, 60, id="in-the-list-of-tags"),
        pytest.param(2, 0, id="before-the-commit"),
        pytest.param(2, 400, id="in-the-commit"),
        pytest.param(3, 0, id="before-the-blobs"),
        pytest.param(3, 4000, id="in-the-blobs"),
    ],
)
def test_dropped_connection_is_an_error(
    connection, bytes_let_through, served, commit, repository
):
    with (
        git_server(served, {connection: bytes_let_through}) as server,
        pytest.raises(SourceError, match=r"^git (ls-remote|fetch): \S.*$"),
    ):
        fetch_included(repository, server.url(), commit)
    assert server.sent[connection - 1] == bytes_let_through


@pytest.mark.parametrize("scheme", ["git", "http"])
@pytest.mark.parametrize("server", [silent_server, deaf_server])
@pytest.mark.parametrize("tools", ["all", "no-ps"])
def test_server_that_never_answers_is_given_up(
    scheme, server, tools, repository, monkeypatch, tmp_path
):
    monkeypatch.setattr(git_commands, "PROBE_SECONDS", 0.2)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    if tools == "no-ps":  # which a slim container lacks, and GitPython calls to kill
        monkeypatch.setenv("PATH", str(only_git(tmp_path / "bin")))
    with server() as port:
        git_commands.create_repository(
            repository, f"{scheme}://127.0.0.1:{port}/sample"
        )
        error = error_of(lambda: git_commands.remote_tag(repository, "v1"))
    assert str(error) == "git ls-remote: no answer within 0.2 s"
    assert helpers_of(repository) == []


def error_of(call) -> BaseException:
    """Return what a call raises, if it ends at all before TCP gives up by itself."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(call)
        try:
            return future.exception(timeout=WAIT_S)
        finally:
            pool.shutdown(wait=False)


def only_git(folder: Path) -> Path:
    """Return a folder for PATH with git in it and nothing else."""
    folder.mkdir()
    (folder / "git").symlink_to(shutil.which("git"))
    return folder


def helpers_of(repository: Path) -> list[str]:
    """Return the processes that git left behind, those that name its repository."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
            environment = (process / "environ").read_bytes()
        except OSError:  # it ended meanwhile
            continue
        if os.fsencode(repository) in command + environment:
            found.append(command.decode(errors="replace"))
    return found


def test_transfer_has_a_time_limit_too(served, commit, repository, monkeypatch):
    monkeypatch.setattr(git_commands, "TRANSFER_SECONDS", 0.5)
    with git_server(served, {1: 300}, hold=True) as server:
        git_commands.create_repository(repository, server.url())
        with pytest.raises(SourceError, match=r"^git fetch: no answer within 0.5 s$"):
            git_commands.fetch_commit(repository, commit)


# --- git itself ---


@pytest.mark.parametrize(
    "make, message",
    [
        pytest.param(lambda folder: None, "git is not installed", id="missing"),
        pytest.param(
            lambda folder: write_files(folder, {"git": "#!/bin/sh\n"}),
            "git cannot be run: Permission denied",
            id="not-executable",
        ),
    ],
)
def test_git_that_cannot_run_is_an_error(
    make, message, repository, monkeypatch, tmp_path
):
    (tmp_path / "bin").mkdir()
    make(tmp_path / "bin")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(SourceError, match=message):
        git_commands.create_repository(repository, "git://127.0.0.1:9/x")


@pytest.mark.parametrize("refresh", [None, "raise"])
def test_import_without_git_succeeds(refresh, tmp_path):
    told = "print(os.environ.get('GIT_PYTHON_REFRESH'))"
    code = f"import readerkit.upstreams.git_commands, os; {told}"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PATH": str(tmp_path)}
        | ({"GIT_PYTHON_REFRESH": refresh} if refresh else {}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == (f"{refresh}\n", "")


# --- nobody's configuration ---

UPLOAD_PACK = "touch '{marker}'; git-upload-pack"
"""A command that fetching over file:// runs, where its configuration is obeyed."""

TRAPS = [
    # what is set up, and the address at which plain git falls into it
    pytest.param({"GIT_SSH_COMMAND": "touch '{marker}'; false"}, "", "ssh", id="ssh"),
    pytest.param({"GIT_SSH": "{script}"}, "", "ssh", id="ssh-program"),
    pytest.param({}, "[core]\nsshCommand = {script}\n", "ssh", id="gitconfig-ssh"),
    # The real ssh would obey ~/.ssh/config, which may name commands.
    pytest.param({"PATH": "{home}/bin:{path}"}, "", "ssh", id="ssh-on-path"),
    pytest.param(
        {"GIT_ALLOW_PROTOCOL": "ext"}, "", "ext", id="protocol-that-runs-commands"
    ),
    pytest.param(
        {}, "[protocol]\nallow = always\n", "ext", id="gitconfig-allows-every-protocol"
    ),
    pytest.param(
        {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "remote.origin.uploadpack",
            "GIT_CONFIG_VALUE_0": UPLOAD_PACK,
        },
        "",
        "file",
        id="config-count",
    ),
    pytest.param(
        {"GIT_CONFIG_PARAMETERS": "'remote.origin.uploadpack'='{script}'"},
        "",
        "file",
        id="config-parameters",
    ),
    pytest.param({"GIT_CONFIG_GLOBAL": "{home}/other"}, "", "file", id="config-global"),
    pytest.param({"GIT_CONFIG_SYSTEM": "{home}/other"}, "", "file", id="config-system"),
    pytest.param({"XDG_CONFIG_HOME": "{home}/xdg"}, "", "file", id="config-xdg"),
    pytest.param({"GIT_EXEC_PATH": "{home}/exec"}, "", "file", id="exec-path"),
    pytest.param({"GIT_PROXY_COMMAND": "{script}"}, "", "git", id="proxy-command"),
    pytest.param(
        {}, "[core]\ngitProxy = {script}\n", "git", id="gitconfig-proxy-command"
    ),
    pytest.param({"GIT_TRACE": "{marker}"}, "", "file", id="trace"),
    pytest.param(
        {"GIT_TEMPLATE_DIR": "{home}/template"}, "", "file", id="hooks-of-a-template"
    ),
    pytest.param(
        {},
        "[init]\ntemplateDir = {home}/template\n",
        "file",
        id="gitconfig-hooks-of-a-template",
    ),
    pytest.param(
        {}, "[core]\nhooksPath = {home}/template/hooks\n", "file", id="gitconfig-hooks"
    ),
    pytest.param(
        {},
        '[remote "origin"]\nuploadpack = {script}\n',
        "file",
        id="gitconfig-upload-pack",
    ),
    pytest.param(
        {},
        "[uploadpack]\npackObjectsHook = {script}\n",
        "file",
        id="gitconfig-pack-objects-hook",
    ),
    pytest.param(
        {},
        '[url "ext::touch {marker} #"]\ninsteadOf = file:\n'
        '[protocol "ext"]\nallow = always\n',
        "file",
        id="gitconfig-instead-of",
    ),
    pytest.param({"GIT_ASKPASS": "{script}"}, "", "http", id="askpass"),
    pytest.param({"SSH_ASKPASS": "{script}"}, "", "http", id="ssh-askpass"),
    pytest.param({}, "[core]\naskPass = {script}\n", "http", id="gitconfig-askpass"),
    pytest.param(
        {},
        "[credential]\nhelper = {script}\n",
        "http",
        id="gitconfig-credential-helper",
    ),
]
IDLE_TRAPS = """\
[alias]
init = !touch {marker}
fetch = !touch {marker}
ls-remote = !touch {marker}
[core]
fsmonitor = {script}
alternateRefsCommand = {script}
pager = {script}
editor = {script}
[gpg]
program = {script}
[include]
path = {home}/other
"""
"""Nothing falls into these today: plain git does not either."""


@pytest.fixture(scope="module")
def daemon(served):
    with git_server(served) as server:
        yield server


@pytest.fixture(scope="module")
def locked_web():
    """A web server that asks everyone for a password."""
    with http_server({}, status=401) as server:
        yield server


@pytest.fixture
def trap(request, tmp_path, monkeypatch) -> Path:
    """Lay a trap in the caller's home and variables; return its marker file."""
    variables, config = request.param
    home, marker = tmp_path / "home", tmp_path / "marker"
    script = f"#!/bin/sh\ntouch '{marker}'\nexec git-upload-pack \"$@\"\n"
    names = {"home": home, "marker": marker, "script": home / "script"}
    names["path"] = os.environ["PATH"]
    other = f'[remote "origin"]\nuploadpack = {home}/script\n'
    hook = f"#!/bin/sh\ntouch '{marker}'\n"
    write_files(
        home,
        {
            "script": script,
            "bin/ssh": script,
            "other": other,
            "xdg/git/config": other,
            "exec/git-upload-pack": hook,
            "template/hooks/reference-transaction": hook,
            ".gitconfig": config.format(**names),
        },
    )
    for name in ("script", "bin/ssh", "exec/git-upload-pack"):
        (home / name).chmod(0o755)
    (home / "template/hooks/reference-transaction").chmod(0o755)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("GIT_CONFIG_NOSYSTEM", raising=False)
    for key, value in variables.items():
        monkeypatch.setenv(key, value.format(**names))
    return marker


def fall_into(folder: Path, url: str) -> None:
    """Do with plain git, in the caller's environment, what ``git_commands`` does."""
    for command in (
        ["init", "--quiet", "--bare", str(folder)],
        ["-C", str(folder), "config", "remote.origin.url", url],
        ["-C", str(folder), "fetch", "--quiet", "--depth=1", "origin", "v1:refs/x"],
    ):
        subprocess.run(
            ["git", *command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )


@pytest.mark.parametrize(
    "trap, transport",
    [
        pytest.param(each.values[:2], each.values[2], id=each.id)
        for each in [*TRAPS, pytest.param({}, IDLE_TRAPS, "none", id="idle-traps")]
    ],
    indirect=["trap"],
)
def test_nothing_of_the_caller_runs(
    trap,
    transport,
    served,
    daemon,
    locked_web,
    commit,
    repository,
    tmp_path,
    monkeypatch,
):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    url = {
        "file": (served / "sample").as_uri(),
        "none": (served / "sample").as_uri(),
        "git": daemon.url(),
        "http": f"{locked_web.url}/sample",
        "ssh": "ssh://127.0.0.1/sample",
        "ext": f"ext::touch {trap}",
    }[transport]
    if transport != "none":
        fall_into(tmp_path / "plain", url)
        assert trap.exists(), "this trap catches nobody: the test proves nothing"
        trap.unlink()
    before = dict(os.environ)
    if transport in ("http", "ssh", "ext"):
        with pytest.raises(SourceError):
            fetch_included(repository, url, commit)
    else:
        files = fetch_included(repository, url, commit)
        assert files == {path: content(path) for path in INCLUDED}
    assert not trap.exists()
    assert not (repository / "hooks").exists()
    assert dict(os.environ) == before


def test_no_variable_of_the_caller_leads_elsewhere(
    served, commit, repository, tmp_path, monkeypatch
):
    victim = tmp_path / "victim"
    make_repository(victim, {"mine.py": "mine = 1\n"})
    monkeypatch.chdir(victim)
    before = snapshot(victim)
    names = "DIR COMMON_DIR WORK_TREE INDEX_FILE OBJECT_DIRECTORY NAMESPACE"
    names += " ALTERNATE_OBJECT_DIRECTORIES SHALLOW_FILE GRAFT_FILE REPLACE_REF_BASE"
    variables = {f"GIT_{name}": str(victim / ".git") for name in names.split()}
    variables |= {"GIT_DEFAULT_HASH": "sha256", "GIT_PROTOCOL": "version=0"}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    files = fetch_included(repository, (served / "sample").as_uri(), commit)
    assert files == {path: content(path) for path in INCLUDED}
    assert {name: os.environ[name] for name in variables} == variables
    assert snapshot(victim) == before
    assert commit in objects(repository)


def snapshot(folder: Path) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def test_program_that_a_variable_names_does_not_run_at_import(tmp_path):
    write_files(tmp_path, {"evil": f"#!/bin/sh\ntouch '{tmp_path}/marker'\n"})
    (tmp_path / "evil").chmod(0o755)
    for module, ran in (("git", True), ("readerkit.upstreams.git_commands", False)):
        subprocess.run(
            [sys.executable, "-c", f"import {module}"],
            env=dict(os.environ) | {"GIT_PYTHON_GIT_EXECUTABLE": f"{tmp_path}/evil"},
            capture_output=True,
            check=False,
        )
        assert (tmp_path / "marker").exists() is ran
        (tmp_path / "marker").unlink(missing_ok=True)

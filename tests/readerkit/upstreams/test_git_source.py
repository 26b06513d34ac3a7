import random
from pathlib import Path

import pytest
from msgspec.structs import replace

from readerkit.errors import MovedTagError, SourceError
from readerkit.upstreams import Upstream
from readerkit.upstreams.git_source import serve_git
from readerkit.upstreams.store import blob_id
from readerkit.upstreams.upstream import Licence
from tests.helpers import git, make_repository, write_files
from tests.readerkit.upstreams.servers import git_server

pytestmark = pytest.mark.sampled

FILES = {
    "lib/a.py": b"x = 1\r\n",
    "lib/b/c.py": b"y = 2\n",
    "lib/same.py": b"y = 2\n",
    "lib/large.py": random.Random(1).randbytes(10_000).hex().encode(),
    "docs/guide.py": b"not = 'included'\n",
    "LICENSE": b"Do as you like.\n",
}
INCLUDED = {path: data for path, data in FILES.items() if path.startswith("lib/")}


@pytest.fixture
def parent(tmp_path) -> Path:
    return tmp_path / "served"


@pytest.fixture
def upstream(parent) -> Upstream:
    """An upstream whose repository ``sample`` lies in ``parent``."""
    commit = make_repository(parent / "sample", FILES)
    return Upstream(
        name="sample",
        title="Sample",
        include=("lib/**/*.py",),
        url=(parent / "sample").as_uri(),
        tag="v1",
        commit=commit,
        licence=Licence("MIT", "LICENSE", "Nobody"),
    )


@pytest.fixture
def cache(tmp_path) -> Path:
    return tmp_path / "cache" / "git"


# --- what is served ---


def test_included_files_and_the_licence_are_served_with_their_commit(upstream, cache):
    served = serve_git(upstream, None, cache)
    assert served.files == INCLUDED
    assert served.licence == FILES["LICENSE"]
    assert served.proves_commit
    assert served.origin == f"git {upstream.url} at {upstream.commit[:12]}"
    assert served.public == f"a local git repository at {upstream.commit[:12]}"


def test_only_asked_files_are_fetched_and_all_at_once(upstream, cache, parent):
    with git_server(parent) as server:
        upstream = replace(upstream, url=server.url())
        served = serve_git(upstream, ["lib/a.py", "lib/b/c.py"], cache)
        assert set(served.files) == {"lib/a.py", "lib/b/c.py"}
        assert server.connections == 3
        assert sum(server.sent) < len(FILES["lib/large.py"]) // 2
        assert serve_git(upstream, ["lib/large.py"], cache).files
        assert server.sent[-1] > len(FILES["lib/large.py"]) // 2


def test_licence_may_be_an_included_file_too(upstream, cache):
    everything = replace(upstream, include=("**",))
    served = serve_git(everything, None, cache)
    assert served.files == FILES
    assert served.licence == FILES["LICENSE"]


def test_nothing_is_left_in_the_cache(upstream, cache):
    serve_git(upstream, None, cache)
    with pytest.raises(SourceError):
        serve_git(upstream, ["lib/gone.py"], cache)
    assert list(cache.iterdir()) == []


def test_licence_that_is_not_there_is_no_error(upstream, cache):
    served = serve_git(
        replace(upstream, licence=Licence("MIT", "COPYING", "Nobody")), None, cache
    )
    assert served.files == INCLUDED
    assert served.licence is None


def test_pinned_commit_is_served_when_the_branch_went_on(upstream, cache, parent):
    write_files(parent / "sample", {"lib/a.py": "changed = 1\n", "lib/new.py": ""})
    git(parent / "sample", "add", "--all")
    git(parent / "sample", "commit", "--quiet", "--message=later")
    assert serve_git(upstream, None, cache).files == INCLUDED


@pytest.mark.parametrize(
    "attributes",
    [
        pytest.param("*.py text eol=crlf\n", id="line-ends"),
        pytest.param("*.py export-subst\n", id="export-subst"),
        pytest.param("*.py export-ignore\n", id="export-ignore"),
        pytest.param("*.py ident\n", id="ident"),
        pytest.param("*.py filter=evil\n", id="filter"),
        pytest.param("*.py working-tree-encoding=UTF-16\n", id="encoding"),
    ],
)
def test_attributes_change_no_byte(attributes, upstream, cache, parent):
    content = b"# $Format:%H$ $Id$\nx = 1\n"
    write_files(parent / "sample", {"lib/a.py": content})
    git(parent / "sample", "add", "--all")
    write_files(parent / "sample", {".gitattributes": attributes})
    git(parent / "sample", "add", ".gitattributes")
    git(parent / "sample", "commit", "--quiet", "--message=attributes")
    git(parent / "sample", "tag", "--force", "v1")
    pinned = replace(upstream, commit=git(parent / "sample", "rev-parse", "HEAD"))
    assert serve_git(pinned, ["lib/a.py"], cache).files["lib/a.py"] == content


def test_links_and_submodules_are_not_files(upstream, cache, parent, tmp_path):
    sample = parent / "sample"
    (tmp_path / "secret").write_text("secret")
    (sample / "lib" / "link.py").symlink_to(tmp_path / "secret")
    git(sample, "add", "--all")
    git(sample, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},lib/sub.py")
    write_files(sample, {".gitmodules": '[submodule "x"]\npath=lib/sub.py\nurl=/x\n'})
    git(sample, "add", ".gitmodules")
    git(sample, "commit", "--quiet", "--message=links")
    git(sample, "tag", "--force", "v1")
    pinned = replace(upstream, commit=git(sample, "rev-parse", "HEAD"))
    served = serve_git(pinned, None, cache)
    assert served.files == INCLUDED
    assert served.links == ("lib/link.py",)
    with pytest.raises(SourceError, match=r"lacks 1 file: lib/sub\.py"):
        serve_git(pinned, ["lib/sub.py"], cache)
    for path, problem in (("link.py", "is a link"), ("link.py/x", "is behind lib/l")):
        with pytest.raises(SourceError, match=f"lib/{path} of commit .* {problem}"):
            serve_git(pinned, [f"lib/{path}"], cache)


def test_nothing_of_the_served_repository_runs(upstream, cache, parent, tmp_path):
    sample, marker = parent / "sample", tmp_path / "marker"
    names = "reference-transaction post-checkout pre-receive update post-update"
    hooks = {
        f".git/hooks/{name}": f"#!/bin/sh\ntouch {marker}\n" for name in names.split()
    }
    write_files(sample, hooks)
    for hook in hooks:
        (sample / hook).chmod(0o755)
    for key in (
        "uploadpack.packObjectsHook",
        "core.fsmonitor",
        "core.sshCommand",
        "core.alternateRefsCommand",
        "remote.origin.uploadpack",
        "filter.evil.smudge",
        "filter.evil.process",
        "credential.helper",
    ):
        git(sample, "config", key, f"touch {marker}; exec")
    # A promisor whose missing objects would be fetched by running a command.
    git(sample, "config", "remote.evil.promisor", "true")
    git(sample, "config", "remote.evil.url", f"ext::touch {marker}")
    git(sample, "config", "protocol.ext.allow", "always")
    (sample / ".git" / "objects" / blob_path(FILES["lib/a.py"])).unlink()
    assert serve_git(upstream, ["lib/b/c.py"], cache).files
    with pytest.raises(SourceError):
        serve_git(upstream, ["lib/a.py"], cache)
    assert not marker.exists()


def blob_path(data: bytes) -> str:
    blob = blob_id(data)
    return f"{blob[:2]}/{blob[2:]}"


# --- tags and commits ---


@pytest.mark.parametrize("annotate", [[], ["--annotate", "--message=again"]])
def test_moved_tag_is_an_error_with_both_ids(annotate, upstream, cache, parent):
    sample = parent / "sample"
    git(sample, "commit", "--quiet", "--allow-empty", "--message=later")
    git(sample, "tag", "--force", *annotate, "v1")
    now = git(sample, "rev-parse", "HEAD")
    with pytest.raises(MovedTagError) as caught:
        serve_git(upstream, None, cache)
    message = str(caught.value)
    assert f"got {now}, expected {upstream.commit}" in message
    assert "tag v1" in message
    assert upstream.url in message
    assert "readerkit fetch sample --update-lock" in message


def test_deleted_tag_is_an_error_of_this_source(upstream, cache, parent):
    git(parent / "sample", "tag", "--delete", "v1")
    with pytest.raises(SourceError, match="it has no tag v1") as caught:
        serve_git(upstream, None, cache)
    assert not isinstance(caught.value, MovedTagError)


def test_upstream_without_a_tag_needs_none(upstream, cache, parent):
    git(parent / "sample", "tag", "--delete", "v1")
    assert serve_git(replace(upstream, tag=""), None, cache).files == INCLUDED


def test_missing_commit_is_an_error_that_names_it(upstream, cache):
    gone = replace(upstream, commit="f" * 40, tag="")
    with pytest.raises(SourceError, match=r"f{40}"):
        serve_git(gone, None, cache)


def test_missing_file_is_an_error_that_names_it(upstream, cache):
    with pytest.raises(SourceError, match=r"lacks 2 files: lib/x\.py"):
        serve_git(upstream, ["lib/x.py", "lib/a.py", "lib/z.py"], cache)


def test_missing_repository_is_an_error(upstream, cache, parent):
    gone = replace(upstream, url=(parent / "gone").as_uri())
    with pytest.raises(SourceError, match="gone"):
        serve_git(gone, None, cache)


def test_altered_object_on_the_server_is_an_error(upstream, cache, parent):
    objects = parent / "sample" / ".git" / "objects"
    good, bad = (
        objects / blob_path(FILES[name]) for name in ("lib/b/c.py", "lib/a.py")
    )
    bad.unlink()
    bad.write_bytes(good.read_bytes())
    with pytest.raises(SourceError):
        serve_git(upstream, None, cache)


def test_unwritable_cache_is_an_error(upstream):
    with pytest.raises(
        SourceError, match="cannot make a repository in /dev/null/git: "
    ):
        serve_git(upstream, None, Path("/dev/null/git"))


# --- after a failure ---


@pytest.mark.parametrize("connection, let_through", [(1, 10), (2, 200), (3, 100)])
def test_dropped_connection_is_an_error_and_the_next_fetch_succeeds(
    connection, let_through, upstream, cache, parent
):
    with git_server(parent, {connection: let_through}) as server:
        upstream = replace(upstream, url=server.url())
        with pytest.raises(SourceError):
            serve_git(upstream, None, cache)
        assert server.connections == connection
        assert serve_git(upstream, None, cache).files == INCLUDED


def test_what_a_killed_fetch_left_is_cleared_away(upstream, cache):
    halves = {"shallow.lock": "", "HEAD": "", "objects/pack/tmp_pack_x": "half"}
    write_files(cache / "sample-killed.git", halves)
    write_files(cache / "another-killed.git", halves)
    assert serve_git(upstream, None, cache).files == INCLUDED
    assert [path.name for path in cache.iterdir()] == ["another-killed.git"]

"""Which addresses of a book git is given: all others are refused before it starts."""

from __future__ import annotations

import pytest

from readerkit.errors import SourceError
from readerkit.upstreams import git_commands
from tests.helpers import make_book, run_process, write_files

REFUSED = [
    *("file:///etc", "file:/etc", "FILE:///etc", "file://host/etc", "/etc", "../etc"),
    *("C:\\repo", "~/repo", ".", "", "repo", "host:repo", "git@host:repo.git"),
    *("http://host/x", "HTTP://host/x", "git://host/x", "ssh://host/x", "ftp://host/x"),
    *(
        "ext::sh -c id",
        "ext::touch% /tmp/x",
        "fd::17",
        "fd::17/repo",
        "file::https://x",
    ),
    *("testgit::https://h/x", "https::https://h/x", "http::https://h/x", "foo://h/x"),
    *(
        "-oProxyCommand=id",
        "--upload-pack=id",
        "-",
        "--",
        "https",
        "https:",
        "https:/h",
    ),
    *("https://", "https:///x", "https://-oProxyCommand=id/x", "https://--/x"),
    *("https://user:word@host/x", "https://user@host/x", "https://:word@host/x"),
    *("https://a@b@host/x", "https://host:word@evil/x", "https://host/x\nfile:///y"),
    *("https://host/x y", "https://host/x\ty", "https://ho st/x", "https://host\\x"),
    *(
        "https://host/\x00",
        "https://host/\x1b[2J",
        "https://host/\x7f",
        "https://ho\u200bst/",
    ),
    *(
        "https://host:port/x",
        "https://host:999999/x",
        " https://host/x",
        "https://host/x\n",
    ),
    *("https://$(id)/x", "https://`id`/x", "https://host;id/x", "https://[::1/x"),
]
ALLOWED = [
    "https://github.com/NVIDIA/Megatron-LM",
    "https://host",
    "https://host:8443/x.git",
    "https://[::1]:8443/x",
    "https://host/x/~me/a%20b",
]


@pytest.mark.parametrize("url", REFUSED)
def test_no_process_is_started_for_any_other_address(url, tmp_path, monkeypatch):
    monkeypatch.delenv("READERKIT_SCHEMES")
    monkeypatch.setattr(
        git_commands, "_git", lambda *_, **__: pytest.fail("git was started")
    )
    with pytest.raises(SourceError, match="expected ") as refused:
        git_commands.create_repository(tmp_path / "repository", url)
    assert str(refused.value).isprintable()
    assert not (tmp_path / "repository").exists()


@pytest.mark.parametrize("url", ALLOWED)
def test_address_over_https_is_taken(url, tmp_path, monkeypatch):
    monkeypatch.delenv("READERKIT_SCHEMES")
    git_commands.create_repository(tmp_path / "repository", url)


@pytest.mark.parametrize(
    ("schemes", "url", "taken"),
    [
        ("ssh", "ssh://git@host/x", True),
        ("ssh", "ssh://host:22/x", True),
        ("ssh", "ssh://git:word@host/x", False),
        ("ssh", "ssh://-oProxyCommand=id/x", False),
        ("ssh", "ssh://-oProxyCommand=id@host/x", False),
        ("ssh", "git@host:x", False),
        ("ssh", "git://host/x", False),
        ("file git", "git://host/x", True),
        ("file git", "file:///x", True),
        ("file git", "file://host/x", False),
        ("ext fd", "ext::id", False),
        ("ext fd", "fd::17", False),
        ("*", "git://host/x", False),
        ("https", "http://host/x", False),
    ],
)
def test_reader_may_allow_more_and_never_a_command(
    schemes, url, taken, tmp_path, monkeypatch
):
    monkeypatch.setenv("READERKIT_SCHEMES", schemes)
    if taken:
        git_commands.create_repository(tmp_path / "repository", url)
    else:
        with pytest.raises(SourceError):
            git_commands.create_repository(tmp_path / "repository", url)


@pytest.mark.parametrize("lead", ["file:///etc", "git://127.0.0.1:9/x"])
def test_server_cannot_lead_on_to_another_scheme(lead, tmp_path):
    repository = tmp_path / "repository"
    git_commands.create_repository(repository, "https://127.0.0.1:9/x")
    git_commands._git(repository, "config", "remote.origin.url", lead)
    with pytest.raises(SourceError, match=r"transport '.*' not allowed"):
        git_commands.remote_tag(repository, "v1")


@pytest.mark.parametrize("url", ["file:///etc", "ssh://host/x", "git://host/x"])
def test_fetch_of_a_strangers_book_says_so_and_starts_no_git(url, tmp_path):
    book = make_book(tmp_path, url=url)
    marker = tmp_path / "marker"
    write_files(tmp_path / "bin", {"git": f"#!/bin/sh\ntouch {marker}\n"})
    (tmp_path / "bin" / "git").chmod(0o755)
    environment = {"READERKIT_SCHEMES": None, "PATH": f"{tmp_path / 'bin'}:/usr/bin"}
    done = run_process(
        *("fetch", "--source", "git", "--book", str(book.root)),
        environment=environment,
    )
    assert done.code == 1
    assert f"got the address '{url}', expected https://" in done.err
    assert "Traceback" not in done.err
    assert not marker.exists()

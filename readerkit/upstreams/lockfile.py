"""The committed lock of an upstream: its blob ids, and what each anchor resolved to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from readerkit.errors import ContentError, ContentFault
from readerkit.model.anchor import Fingerprint, Span
from readerkit.model.freshness import MadeFrom, digest, digest_all
from readerkit.model.git_names import (
    NO_BLOB,
    NO_COMMIT,
    BlobId,
    CommitId,
    TreePath,
    parse_blob,
    parse_commit,
    parse_lines,
    parse_path,
)
from readerkit.system import json_file
from readerkit.wording.next_command import typed
from readerkit.wording.numbers import counted

FORMAT = 1
REVIEW = ("by", "on", "at")
"""What a lock says of a review besides the code: absent where nobody said it."""


@dataclass(frozen=True, slots=True)
class LockedAnchor:
    """What one anchor resolved to when the lock was written."""

    span: Span
    fingerprint: Fingerprint
    reviewed: str = ""
    """The code fingerprint that a person last read the note against; empty: never."""
    blob: BlobId = NO_BLOB
    """Of the file it resolved in: while a file is this blob, nothing has changed."""
    by: str = ""
    """Who read the note against it; empty where nobody said. The same for the next."""
    on: str = ""
    """The day, as 2026-01-31."""
    at: str = ""
    """The commit that was checked out then, of a code base that lives on."""

    @property
    def made_from(self) -> MadeFrom:
        """What it is known by: where it stands, its code, and what is around that."""
        marks = self.fingerprint
        return {
            "its place": str(self.span),
            "its code": digest(",".join(marks.lines)),
            "the code before it": marks.before,
            "the code after it": marks.after,
            "the definition around it": marks.symbol,
        }


@dataclass(frozen=True, slots=True)
class Lock:
    """Blob ids of every included file, and every resolved anchor, at one commit."""

    commit: CommitId
    files: Mapping[TreePath, BlobId] = field(default_factory=dict)
    anchors: Mapping[str, LockedAnchor] = field(default_factory=dict)
    """Annotation id to what its anchor resolved to."""
    claims: Mapping[str, MadeFrom] = field(default_factory=dict)
    """By the key of a claim that held: what of the source it rests on."""
    tag: str = ""
    """The name of that commit when its files were listed; empty: it had none."""

    @classmethod
    def parse(cls, text: str, file: str) -> Lock:
        """Return the lock that ``to_text`` wrote.

        Raises:
            ContentError: text that is not such a lock.
        """
        try:
            data = json_file.load(text)
            if data["format"] != FORMAT:
                got = f"format {data['format']}"
                raise ContentError(
                    [
                        ContentFault(
                            file, 1, 1, "a lock of another version", got, f"{FORMAT}"
                        )
                    ]
                )
            files = _files(data["files"], data.get("files_sha256"))
            named = data["commit"]
            commit = NO_COMMIT if named == "" else parse_commit(named)
            anchors = {key: _anchor(key, row) for key, row in data["anchors"].items()}
            claims, tag = _claims(data.get("claims", {})), data.get("tag", "")
            if not isinstance(tag, str):
                raise ValueError("a tag that is no text")
            return cls(commit, files, anchors, claims, tag)
        except (
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
        ) as error:
            line = error.lineno if isinstance(error, json.JSONDecodeError) else 1
            got = str(error)
            if isinstance(error, KeyError):
                got = f"no key {error}"
            elif isinstance(error, (TypeError, AttributeError)):
                got = "JSON of another shape"
            expected = (
                f"what {typed('fetch', '--update-lock')} writes: restore the file, or "
                "delete it and run that"
            )
            raise ContentError(
                [ContentFault(file, line, 1, "not a readable lock", got, expected)]
            ) from None

    def to_text(self) -> str:
        """Return JSON, sorted, a line for each file and anchor: made to be diffed."""
        files = [
            f"{_json(path)}: {_json(blob)}" for path, blob in sorted(self.files.items())
        ]
        anchors = [
            f"{_json(key)}: {_json(_plain(anchor))}"
            for key, anchor in sorted(self.anchors.items())
        ]
        rows = [f'"format": {FORMAT}', f'"commit": {_json(self.commit)}']
        rows += [f'"tag": {_json(self.tag)}'] if self.tag else []
        if files:
            rows.append(f'"files_sha256": {_json(digest_all(self.files))}')
        rows += [f'"files": {_block(files)}', f'"anchors": {_block(anchors)}']
        claims = sorted(self.claims.items())
        if claims:
            block = [f"{_json(key)}: {_json(dict(parts))}" for key, parts in claims]
            rows.append(f'"claims": {_block(block)}')
        return "{\n" + ",\n".join(rows) + "\n}\n"

    def with_files(
        self, commit: CommitId, files: Mapping[TreePath, BlobId], tag: str = ""
    ) -> Lock:
        """Return the lock with other blob ids, its anchors kept."""
        return replace(self, commit=commit, files=files, tag=tag)

    def with_anchors(self, anchors: Mapping[str, LockedAnchor]) -> Lock:
        """Return the lock with other anchors."""
        return replace(self, anchors=anchors)

    def with_claims(self, claims: Mapping[str, MadeFrom]) -> Lock:
        """Return the lock with other claims."""
        return replace(self, claims=claims)


def _files(rows: Mapping[str, Any], sha256: str | None) -> dict[TreePath, BlobId]:
    """Return a list of files that is whole, each named as a tree can name it.

    Raises:
        ValueError: what is wrong with it.
    """
    files = {parse_path(path): _blob(path, blob) for path, blob in rows.items()}
    if not files:
        return files
    if sha256 is None:
        wrong = "without 'files_sha256'"
    elif digest_all(files) != sha256:
        wrong = (
            "whose digest is not the one beside it: rows were removed, added or changed"
        )
    else:
        return files
    raise ValueError(f"a list of {counted(len(files), 'file')} {wrong}")


def _anchor(name: str, value: Mapping[str, Any]) -> LockedAnchor:
    marks = dict(value["fingerprint"])
    if not all(isinstance(each, str) for each in (*marks.values(), value["reviewed"])):
        raise ValueError(f"{name}: a fingerprint that is no text")
    marks["lines"] = tuple(marks["lines"].split(","))
    try:
        span = Span(parse_path(value["path"]), *parse_lines(*value["span"]))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    blob = _blob(name, value["blob"]) if value.get("blob") else NO_BLOB
    review = {key: value.get(key, "") for key in REVIEW}
    if not all(isinstance(each, str) for each in review.values()):
        raise ValueError(f"{name}: a review that is no text")
    return LockedAnchor(span, Fingerprint(**marks), value["reviewed"], blob, **review)


def _claims(rows: Mapping[str, Any]) -> dict[str, MadeFrom]:
    for key, parts in rows.items():
        if not all(isinstance(each, str) for each in (key, *parts, *parts.values())):
            raise ValueError(f"{key}: a claim that rests on what is no text")
    return {key: dict(parts) for key, parts in rows.items()}


def _blob(of: str, value: object) -> BlobId:
    try:
        return parse_blob(value)
    except ValueError as error:
        raise ValueError(f"{of}: {error}") from None


def _plain(anchor: LockedAnchor) -> dict[str, Any]:
    marks = asdict(anchor.fingerprint)
    marks["lines"] = ",".join(anchor.fingerprint.lines)
    span = anchor.span
    return {
        "path": span.path,
        "blob": anchor.blob,
        "span": [span.first, span.last],
        "fingerprint": marks,
        "reviewed": anchor.reviewed,
        **{key: said for key in REVIEW if (said := getattr(anchor, key))},
    }


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    # A path that is not UTF-8 holds halves of surrogates: only escapes can write them.
    return json.dumps(value) if any("\ud800" <= c <= "\udfff" for c in text) else text


def _block(rows: list[str]) -> str:
    return "{\n" + ",\n".join(rows) + "\n}" if rows else "{}"

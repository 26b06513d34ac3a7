"""Kinds of files, and a file that was read: typed entries, each with its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import GenericAlias
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, TypeVar

from msgspec import Struct
from msgspec.structs import force_setattr

from readerkit.errors import ContentFault
from readerkit.model.base import UNWRITTEN, Id, Model

if TYPE_CHECKING:
    from readerkit.content.strict_yaml import Path, YamlFile

E = TypeVar("E")


class Place(Struct, frozen=True, array_like=True):
    """Where an entry stands in the file that a person wrote."""

    file: str
    line: int
    column: int

    def fault(self, what: str, got: str = "", expected: str = "") -> ContentFault:
        """Return a fault at this place."""
        return ContentFault(self.file, self.line, self.column, what, got, expected)


NOWHERE = Place("", 1, 1)


class Entry(Model, frozen=True, kw_only=True):
    """A mapping that knows where it is written."""

    place: Annotated[Place, UNWRITTEN] = NOWHERE

    def settle(self, place_at: Callable[..., Place]) -> None:
        """Take the place; ``place_at`` has those of what is below, by their keys."""
        force_setattr(self, "place", place_at())


@dataclass(frozen=True, slots=True, eq=False)
class Kind(Generic[E]):
    """A kind of file: what its entries are, and how it holds them."""

    name: str
    entry: Any
    """The model of an entry, with the rules between its keys."""
    form: Literal["list", "mapping", "one"] = "list"
    key: Any = Id
    """Of a mapping."""
    stand_in: E | None = None
    """What an entry with faults takes from, so that the rest of it is checked too."""

    @property
    def whole(self) -> Any:
        """The type of a whole file."""
        if self.form == "list":
            return GenericAlias(list, (self.entry,))
        if self.form == "mapping":
            return GenericAlias(dict, (self.key, self.entry))
        return self.entry

    def entries(self, whole: Any) -> dict[Path, Any]:
        """Return the entries of a whole file by their path; none where it is empty."""
        if self.form == "one":
            return {(): whole}
        if self.form == "list":
            return {(index,): entry for index, entry in enumerate(whole or ())}
        return {(key,): entry for key, entry in (whole or {}).items()}

    def together(self, entries: Mapping[Path, E]) -> Any:
        """Return the file's value from its entries, the inverse of ``entries``."""
        if self.form == "mapping":
            return {path[0]: entry for path, entry in entries.items()}
        return [*entries.values()] if self.form == "list" else entries[()]


@dataclass(slots=True)
class Document(Generic[E]):
    """A file that was held against its model."""

    file: str
    data: bytes
    entries: dict[Path, E] = field(default_factory=dict)
    """Those that fit, by where they stand in the file."""
    faults: list[ContentFault] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)
    """What those that do not fit are called, as far as they say so."""
    partial: dict[Path, E] = field(default_factory=dict)
    """What can be read of these, where the kind has a stand-in for the rest."""
    stand_ins: set[Path] = field(default_factory=set)
    """The keys that it gave."""
    is_broken: bool = False
    """Whether nothing of it fits: what it should hold is not known."""
    yaml: YamlFile | None = None
    """Where everything stands; parsed once somebody asks, if it came from memory."""

    @property
    def value(self) -> E:
        """The one entry of a file that holds one."""
        return self.entries[()]

    def fault(
        self, path: Path, what: str, got: str = "", expected: str = ""
    ) -> ContentFault:
        """Return a fault at the value at ``path``."""
        return self._written().fault(path, what, got, expected)

    def key_fault(self, path: Path, what: str, got: str, expected: str) -> ContentFault:
        """Return a fault at the key at ``path``."""
        return ContentFault(
            self.file, *self._written().key_mark(path), what, got, expected
        )

    def _written(self) -> YamlFile:
        if self.yaml is None:
            from readerkit.content.strict_yaml import parse_yaml

            self.yaml = parse_yaml(self.data, self.file)
        return self.yaml

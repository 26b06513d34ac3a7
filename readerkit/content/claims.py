"""Claims: the words of an entry that say what is so, and the one check of each.

What a check asks of the pinned source, of a record or of a program is written here;
whether it holds is found by the room ``claims``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from msgspec import UNSET, Meta, UnsetType, to_builtins

from readerkit.content.kind import Entry
from readerkit.content.vocabulary import Operation, Phase, SideName
from readerkit.errors import ContentFault
from readerkit.model.anchor import Anchor
from readerkit.model.base import (
    ONCE,
    SOME,
    Count,
    Model,
    Name,
    Problem,
    Text,
    at_least,
    pattern,
)
from readerkit.model.git_names import TreePath

File = Annotated[
    TreePath,
    pattern("^\\S([\\s\\S]*\\S)?$"),
    Meta(description="Path from the root of the upstream that includes it."),
]
Files = Annotated[
    tuple[Text, ...], SOME, ONCE, Meta(description="Files, or globs of files.")
]
Code = Annotated[Text, Meta(description="A pattern; ... stands for anything.")]
Symbol = Annotated[Text, Meta(description="A definition: Class.method, outer.inner.")]
Times = Annotated[int, Meta(ge=0)]
ExperimentName = Annotated[str, pattern("^[a-z0-9]+([_-][a-z0-9]+)*$", maxLength=60)]
Use = Literal["call", "set", "read", "any"]


def _one_of(check: Model, *keys: str) -> Iterator[Problem]:
    """Yield what is wrong where not exactly one of these keys is written."""
    written = to_builtins(check)
    given = " and ".join(f"'{key}'" for key in keys if key in written)
    expected = "one of " + ", ".join(f"'{key}'" for key in keys)
    if not given:
        yield "a key missing", "none of them", expected
    elif " and " in given:
        yield "keys that exclude each other", given, expected


class DefaultPlace(Model, frozen=True):
    """What has a default: where it is written."""

    file: File
    of: Annotated[
        Text,
        Meta(description="Class.field, function.parameter, --option, or a constant."),
    ]


class DefaultCheck(DefaultPlace, frozen=True, rename={"literal": "is"}):
    """A field, a parameter, an option or a constant has this value."""

    literal: Annotated[Any | UnsetType, Meta(description="A literal.")] = UNSET
    code: Annotated[Code | None, Meta(description="Its code, for no literal.")] = None

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong where it names no value, or two."""
        return _one_of(self, "is", "code")


class AbsentCheck(Model, frozen=True, rename={"places": "in"}):
    """What stands nowhere in these files."""

    places: Files
    code: Code | None = None
    name: Annotated[Text | None, Meta(description="An identifier, without dots.")] = (
        None
    )
    text: Annotated[
        Text | None, Meta(description="A word, strings too, comments apart.")
    ] = None
    symbol: Symbol | None = None

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong where it names nothing, two things, or no identifier."""
        yield from _one_of(self, "code", "name", "text")
        if self.name is not None and not self.name.isidentifier():
            expected = "an identifier, without dots; 'code' takes expressions"
            yield "a name that stands nowhere at all", f"'{self.name}'", expected


class UsesCheck(Model, frozen=True, rename={"places": "in"}):
    """The complete set of places that use a name."""

    of: Annotated[Text, Meta(description="A name; of a dotted one, the last part.")]
    places: Files
    how: Use = "call"
    are: Annotated[
        tuple[Text, ...] | None, ONCE, Meta(description="Each as file::symbol.")
    ] = None
    count: Times | None = None

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong with how many it says, or with the name."""
        yield from _one_of(self, "are", "count")
        if not all(part.isidentifier() for part in self.of.split(".")):
            yield (
                "'of' is no name",
                f"'{self.of}'",
                "a name, dotted or not",
            )


class OrderCheck(Model, frozen=True):
    """The first places of patterns stand in this order."""

    file: File
    code: Annotated[tuple[Code, ...], at_least(2)]
    symbol: Symbol | None = None


class GuardCheck(Model, frozen=True):
    """Every place of a pattern, or the ``nth``, stands under a condition."""

    file: File
    code: Code
    symbol: Symbol | None = None
    nth: Annotated[Count | None, Meta(description="Of the code's places.")] = None
    under: Annotated[Code | None, Meta(description="Reached if this is true.")] = None
    unless: Annotated[Code | None, Meta(description="Reached if it is false.")] = None

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong where it names no condition, or two."""
        return _one_of(self, "under", "unless")


class RunCheck(Model, frozen=True, rename={"start": "from", "stop": "to"}):
    """A shipped record says that lines ran or not, or how often a call was sent."""

    record: Annotated[Name, Meta(description="A name of comparisons.yaml.")]
    ran: bool | None = None
    file: File | None = None
    symbol: Symbol | None = None
    code: Code | None = None
    start: Code | None = None
    stop: Code | None = None
    nth: Count | None = None
    operation: Operation | None = None
    calls: Annotated[Times | None, Meta(description="On one rank, in one step.")] = None
    side: SideName = "upstream"
    phase: Phase | None = None

    @property
    def anchor(self) -> Anchor | None:
        """The lines that ran or did not."""
        if self.file is None:
            return None
        return Anchor(
            self.file, self.symbol, self.code, self.start, self.stop, nth=self.nth
        )

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong with the one thing that it asks of the record."""
        yield from _one_of(self, "ran", "calls")
        if self.ran is not None and self.anchor is None:
            yield "'ran' without lines", "no 'file'", "an anchor"
        elif self.anchor is not None and (wrong := self.anchor.contradiction()):
            yield f"anchor: {wrong}", "", ""
        if self.calls is not None and self.operation is None:
            yield "'calls' without a call", "no 'operation'", "the name of a collective"


class ValueCheck(Model, frozen=True, rename={"names": "with"}):
    """A formula has the value of a number in the words."""

    of: Annotated[
        Text,
        Meta(description="A formula of numbers, words of estimates, the names 'with'."),
    ]
    names: Mapping[Name, int | float | DefaultPlace] = {}


class ExperimentCheck(Model, frozen=True):
    """A program of ``annotations/experiments`` prints these figures."""

    name: ExperimentName
    prints: Annotated[Mapping[Name, Any], Meta(extra_json_schema={"minProperties": 1})]


CheckKind = Literal[
    "default",
    "stands",
    "absent",
    "uses",
    "order",
    "guard",
    "run",
    "value",
    "experiment",
    "undecided",
]


class Claim(Entry, frozen=True):
    """Words of an entry, and the one check that they are so."""

    says: Annotated[Text, Meta(description="Words of a text of this entry.")]
    default: DefaultCheck | None = None
    stands: Anchor | None = None
    absent: AbsentCheck | None = None
    uses: UsesCheck | None = None
    order: OrderCheck | None = None
    guard: GuardCheck | None = None
    run: RunCheck | None = None
    value: ValueCheck | None = None
    experiment: ExperimentCheck | None = None
    undecided: Annotated[
        Text | None,
        pattern("(\\w+\\W+){3,}\\w", "a sentence that says why no program can"),
        Meta(description="Why no program can decide it."),
    ] = None

    @property
    def kind(self) -> CheckKind:
        """The key of its check."""
        return next(key for key in CHECKS if getattr(self, key) is not None)

    @property
    def check(self) -> Any:
        """The check itself."""
        return getattr(self, self.kind)


CHECKS: tuple[CheckKind, ...] = CheckKind.__args__  # type: ignore[attr-defined]
_ONE_CHECK = {
    "minProperties": 2,
    "maxProperties": 2,
    "errorMessage": f"'says' and exactly one check: {', '.join(CHECKS)}",
}
Claims = Annotated[
    tuple[Annotated[Claim, Meta(extra_json_schema=_ONE_CHECK)], ...], SOME
]


class Claimed(Entry, frozen=True, kw_only=True):
    """An entry with texts, whose words may be claims."""

    TEXTS: ClassVar[tuple[str, ...]] = ()
    """The fields that hold texts, in reading order."""
    claims: Claims = ()

    @property
    def texts(self) -> Mapping[str, str]:
        """Its texts, by the field of each; none that is empty."""
        given = {name: getattr(self, name) for name in self.TEXTS}
        return {name: text for name, text in given.items() if text}

    def claimed(self) -> Iterator[Claimed]:
        """Yield every part of it that may carry claims, itself first."""
        yield self

    def field_of(self, claim: Claim) -> str:
        """Return the field whose text has the words of a claim; empty where none."""
        return _field_of(claim, self._spaced())

    def claim_faults(self) -> Iterator[ContentFault]:
        """Yield a fault for each claim whose words stand in no text."""
        texts = self._spaced() if self.claims else {}
        for claim in self.claims:
            if not _field_of(claim, texts):
                expected = f"words of {', '.join(texts)}, exactly as they stand"
                got = f"'{claim.says}'{_nearly(claim, texts)}"
                yield claim.place.fault("'says' what no text says", got, expected)

    def _spaced(self) -> dict[str, str]:
        return {name: one_spaced(text) for name, text in self.texts.items()}


def _field_of(claim: Claim, texts: Mapping[str, str]) -> str:
    words = one_spaced(claim.says)
    return next((name for name, text in texts.items() if words in text), "")


def _nearly(claim: Claim, texts: Mapping[str, str]) -> str:
    """Return how far the words of a claim do stand in a text."""
    words = one_spaced(claim.says).split(" ")
    for count in range(len(words) - 1, 0, -1):
        begin = " ".join(words[:count])
        if any(begin in text for text in texts.values()):
            return f" ('{begin}' stands, and not what follows)"
    return ""


def one_spaced(text: str) -> str:
    """Return a text with one blank wherever it has white space."""
    return " ".join(text.split())

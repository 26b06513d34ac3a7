"""What a number in a chapter may be made of beside the words of a quiz's key.

Sizes of the models, GPUs and clusters that ship, an item of an estimate at a setting,
a number of a record, a figure that an experiment of the book printed. Each is read when
a chapter asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from readerkit.app.folders import read_at_most
from readerkit.errors import ReaderkitError
from readerkit.estimate.functions import FUNCTIONS
from readerkit.model.expression import Functions, Number, plain
from readerkit.wording.meant_name import choose
from readerkit.wording.next_command import typed

if TYPE_CHECKING:
    from readerkit.app.library import Library
    from readerkit.estimate.instrument import Shipped
    from readerkit.evidence.record import Record

_ENDS = ("", "_bytes", "_s", "_bytes_per_s", "_per_s")
"""Of fields of hardware: what may be left out of their names, the first that fits."""


def chapter_functions(library: Library) -> Functions:
    """Return all that an expression of a chapter may call."""
    own = _ChapterWords(library)
    return _ChapterFunctions(
        {
            "size": own.size,
            "gpu": own.gpu,
            "cluster": own.cluster,
            "estimate": own.estimate,
            "recorded": own.recorded,
            "printed": own.printed,
        }
    )


class _ChapterFunctions(Mapping[str, "Callable[..., object]"]):
    """Those of a chapter before those of a quiz, of which none is imported for it."""

    def __init__(self, own: Mapping[str, Callable[..., object]]) -> None:
        self._own = own

    def __getitem__(self, word: str) -> Callable[..., object]:
        return self._own[word] if word in self._own else FUNCTIONS[word]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*self._own, *FUNCTIONS}))

    def __len__(self) -> int:
        return len({*self._own, *FUNCTIONS})


class _ChapterWords:
    """What the functions read, each once."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._read: dict[str, Record] = {}

    def size(self, model: str, field: str) -> Number:
        """Return a size of a model: a field of its shape, or ``parameters``."""
        from readerkit.app.catalog import find_model
        from readerkit.estimate.parameters import parameter_count
        from readerkit.estimate.shape import Shape

        shape = Shape.parse(find_model(model))
        if field == "parameters":
            return parameter_count(shape)
        names = [*shape._fields, *_properties(type(shape))]
        return _number(model, field, {name: getattr(shape, name) for name in names})

    def gpu(self, name: str, field: str) -> Number:
        """Return a figure of a GPU: ``memory``, ``flops``, ``link``."""
        from readerkit.app.catalog import find_gpu

        return _figure(name, field, find_gpu(name)._asdict())

    def cluster(self, name: str, field: str) -> Number:
        """Return a figure of a cluster: ``gpus_per_node``, ``inside``, ``between``."""
        from readerkit.app.catalog import find_cluster

        return _figure(name, field, find_cluster(name)._asdict())

    def estimate(self, question: str, item: str, **setting: Any) -> Number:
        """Return an item of what a command says of a setting."""
        from readerkit.estimate.setting import estimates_at, item_of

        estimates = estimates_at(question, setting, self._shipped)
        return item_of(estimates, question, item).value

    def recorded(self, comparison: str, field: str, **of: Any) -> Number:
        """Return a number of a record: ``world_size``, or ``totals.calls`` of a row.

        Of several rows the keywords choose the one: ``side="mini", rank=0``.
        """
        record = self._record(comparison)
        first, *steps = field.split(".")
        rows = _rows(_step(record, first, field), of)
        if len(rows) != 1:
            raise ReaderkitError(
                f"{comparison}: {field}: got {len(rows)} rows, expected words that "
                'choose one, as side="mini", rank=0'
            )
        return _walked(rows[0], steps, f"{comparison}: {field}")

    def printed(self, experiment: str, path: str) -> Number:
        """Return a figure that an experiment printed: ``mixed.total``, ``held.0``."""
        outputs = self._outputs
        if experiment not in outputs:
            keep = typed("prove", "--all", "--keep")
            raise ReaderkitError(
                f"no output of an experiment '{experiment}' is kept: {keep}"
            )
        figures = outputs[experiment]
        return _walked(figures, path.split("."), f"{experiment}: {path}")

    @cached_property
    def _shipped(self) -> Shipped:
        from readerkit.app.page_estimates_script import known_names

        return known_names()

    def _record(self, comparison: str) -> Record:
        """Return a record of the book; one of the reader's own is on no page of it."""
        from readerkit.evidence.record import Record

        folder = self._library.root / "annotations" / "records"
        files = {path.stem: path for path in sorted(folder.glob("*.json"))}
        name = choose("record", comparison, files)
        if name not in self._read:
            text = read_at_most(files[name], self._library.root).decode()
            self._read[name] = Record.parse(text, str(files[name]))
        return self._read[name]

    @cached_property
    def _outputs(self) -> dict[str, dict[str, Any]]:
        from readerkit.app.kept_outputs import KeptOutputs

        kept = KeptOutputs(self._library).outputs
        return {name: output.figures() for name, output in kept.items()}


def _properties(kind: type) -> list[str]:
    return [name for name, each in vars(kind).items() if isinstance(each, property)]


def _figure(name: str, field: str, figures: Mapping[str, Any]) -> Number:
    """Return a figure of hardware, by its name or the beginning of it."""
    for end in _ENDS:
        if field + end in figures:
            return _number(name, field + end, figures)
    return _number(name, field, figures)


def _number(name: str, field: str, values: Mapping[str, Any]) -> Number:
    known = {
        each: value
        for each, value in values.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }
    value: Number = known[choose(f"figure of {name}", field, known)]
    return value


def _step(value: Any, name: str, whole: str) -> Any:
    if isinstance(value, Mapping) and name in value:
        return value[name]
    if isinstance(value, (list, tuple)) and name.isdecimal() and int(name) < len(value):
        return value[int(name)]
    found = None if name.startswith("_") else getattr(value, name, None)
    if found is None or callable(found):
        raise ReaderkitError(f"{whole}: got no '{name}', expected a path to a number")
    return found


def _rows(value: Any, of: Mapping[str, Any]) -> list[Any]:
    """Return the rows of a table whose fields are as given; one value is one row."""
    rows = value if of and isinstance(value, (list, tuple)) else [value]
    return [
        row for row in rows if all(getattr(row, k, None) == v for k, v in of.items())
    ]


def _walked(value: Any, steps: Iterable[str], whole: str) -> Number:
    for step in steps:
        value = _step(value, step, whole)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ReaderkitError(f"{whole}: got {value!r}, expected a number")
    return plain(value)

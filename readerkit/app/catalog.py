"""Models, GPUs, clusters and prices: those that ship, a user's own over them."""

from __future__ import annotations

# A cold command does without pathlib.
# ruff: noqa: PTH113, PTH118, PTH120, PTH123
import json
import os
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from readerkit.app.cached_files import digest, keep, kept_place, parsed_by, read_kept
from readerkit.app.own_place import own_place
from readerkit.errors import (
    ContentError,
    EstimateError,
    GivenFileError,
    ReaderkitError,
    WrongUseError,
)
from readerkit.wording.meant_name import choose

if TYPE_CHECKING:
    from pathlib import Path

    from readerkit.app.own_rows import OwnRows
    from readerkit.budget.money import Price
    from readerkit.content.catalog import ModelEntry
    from readerkit.content.kind import Document
    from readerkit.errors import ContentFault
    from readerkit.estimate.hardware import Cluster, Gpu
    from readerkit.estimate.runs import Run
    from readerkit.estimate.shape import Shape

_PACKAGE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
CATALOG = os.path.join(_PACKAGE, "catalog")


class Row(NamedTuple):
    """One entry of a table, in plain values; of a user's file, which it is from."""

    entry: dict[str, Any]
    own: str = ""


Rows = dict[str, Row]


class Table(NamedTuple):
    """Where a table is: its file, the file's model, what one row is called."""

    file: str
    kind: str
    called: str
    of: Callable[[dict[str, Any]], Mapping[str, dict[str, Any]]] = lambda whole: whole


def _by_terms(whole: dict[str, Any]) -> dict[str, dict[str, Any]]:
    terms = ("vendor", "gpu", "kind", "cloud")
    return {" ".join(str(r.get(k)) for k in terms): r for r in whole["prices"]}


def _hardware(part: str) -> Callable[[dict[str, Any]], dict[str, dict[str, Any]]]:
    """Return what takes one part of a file of hardware; its date is every row's."""
    return lambda whole: {
        name: {"dated": whole["dated"]} | row
        for name, row in whole.get(part, {}).items()
    }


TABLES = {
    "models": Table("models.yaml", "MODELS", "model"),
    "gpus": Table("hardware.yaml", "HARDWARE", "GPU", _hardware("gpus")),
    "clusters": Table("hardware.yaml", "HARDWARE", "cluster", _hardware("clusters")),
    "prices": Table("prices.yaml", "PRICES", "price", _by_terms),
    "runs": Table("runs.yaml", "RUNS", "run"),
}


# --- files ----------------------------------------------------------------------------


def shipped(name: str) -> Path:
    """Return where a file of the catalog is, which ships in the package."""
    from pathlib import Path

    return Path(CATALOG, name)


def read_catalog(path: str | Path, kind: str) -> dict[str, Any]:
    """Return the plain value of a catalog file that fits its model.

    One that was read before comes from the cache, without YAML and its model.

    Raises:
        ContentError: every fault of the file.
        ReaderkitError: a file that cannot be read.
    """
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise WrongUseError(f"{path}: cannot be read: {error.strerror}") from None
    cache_folder = own_place("READERKIT_CACHE", "user_cache_path")
    place = kept_place(cache_folder, str(path), f".{kind.lower()}")
    key = digest(f"{parsed_by()} {path}\0".encode() + data)
    known, _, value = (read_kept(place) or b"").partition(b" ")
    if known.decode() != key:
        value = _parse(data, str(path), kind)
        if cache_folder:
            keep(place, f"{key} ".encode() + value)
    return json.loads(value)  # type: ignore[no-any-return]


def _parse(data: bytes, path: str, kind: str) -> bytes:
    """Return a catalog file as JSON, held against its model."""
    from msgspec import json as fast_json

    from readerkit.content import catalog
    from readerkit.content.validation import read_document

    model = getattr(catalog, kind)
    try:
        document = read_document(data, path, model)
    except ContentError as error:  # no YAML
        raise GivenFileError(error.faults) from None
    if not document.entries and not document.faults:
        document.faults.append(document.fault((), "the file is empty"))
    if kind == "MODELS":
        document.faults += _misshapen(document)
    if document.faults:
        raise GivenFileError(document.faults)
    return fast_json.encode(model.together(document.entries))


def _misshapen(document: Document[ModelEntry]) -> Iterator[ContentFault]:
    """Yield each model whose sizes are no transformer's, or not of its count."""
    from readerkit.estimate.parameters import parameter_count
    from readerkit.estimate.shape import Shape

    for path, entry in document.entries.items():
        try:
            count = parameter_count(Shape.parse(entry.shape))
        except EstimateError as error:
            yield document.fault((*path, "shape"), str(error))
            continue
        if entry.parameters not in (None, count):
            yield document.fault(
                (*path, "parameters"),
                "wrong number of parameters",
                str(entry.parameters),
                f"{count}, to which the shape comes",
            )


def rows(table: str, own: OwnRows | None = None) -> Rows:
    """Return the rows of a table: those that ship, and over them the user's own."""
    file, kind, _, of = TABLES[table]
    found = {name: Row(each) for name, each in of(_read_shipped(file, kind)).items()}
    path = own.find(file) if own else None
    return found | (_own(table, path) if path else {})


@cache
def _read_shipped(file: str, kind: str) -> dict[str, Any]:
    """Return a file of the catalog, which no run sees change: a page asks 40 times."""
    return read_catalog(os.path.join(CATALOG, file), kind)


def _own(table: str, path: str | Path) -> Rows:
    """Return the rows of a user's file, whose sources say that it is theirs."""
    _, kind, _, of = TABLES[table]
    return {
        name: Row(each | {"source": f"{each['source']} (yours: {path})"}, str(path))
        for name, each in of(read_catalog(path, kind)).items()
    }


def find(table: str, name: str, own: OwnRows | None = None) -> tuple[str, Row]:
    """Return a row by its name, the user's own first; or the one in a user's FILE.yaml.

    Raises:
        EstimateError: no such row, with the near ones; or a file with several.
    """
    called = TABLES[table].called
    known = {} if name.endswith((".yaml", ".yml")) else rows(table, own)
    if not known or (name not in known and os.path.isfile(name)):
        own_file = _own(table, name)
        if len(own_file) != 1:
            raise EstimateError(
                f"{name}: got {len(own_file)} {called}s, expected the one to work with"
            )
        return next(iter(own_file.items()))
    try:
        meant = choose(called, name, known)
    except ReaderkitError as error:
        raise EstimateError(str(error)) from None
    if own and known[meant].own:
        own.taken[f"{called} {meant}"] = known[meant].own
    return meant, known[meant]


# --- what they hold -------------------------------------------------------------------


def find_model(name: str, own: OwnRows | None = None) -> dict[str, Any]:
    """Return the sizes of a model.

    Raises:
        EstimateError: no such model, a file with several, or transformers' own.
        ContentError: every fault of a user's file.
    """
    try:
        return dict(find("models", name, own)[1].entry["shape"])
    except ContentError:
        from readerkit.app.transformers_config import options_of_config

        if options := options_of_config(name):
            raise EstimateError(
                f"{name}: got a configuration of the transformers library, expected a "
                f"FILE.yaml of ours: give its sizes, {options}, and what it leaves to "
                "its code (Llama's: --gated --norm rmsnorm --no-bias --no-dropout)"
            ) from None
        raise


def load_models(own: OwnRows | None = None) -> dict[str, Shape]:
    """Return every model."""
    from readerkit.estimate.shape import Shape

    return {
        name: Shape.parse(row.entry["shape"])
        for name, row in rows("models", own).items()
    }


def find_gpu(name: str, own: OwnRows | None = None) -> Gpu:
    """Return a GPU.

    Raises:
        EstimateError: no such GPU, or a file with several.
    """
    meant, row = find("gpus", name, own)
    return _gpus({meant: row})[meant]


def load_gpus(own: OwnRows | None = None) -> dict[str, Gpu]:
    """Return every GPU."""
    return _gpus(rows("gpus", own))


def find_cluster(name: str, own: OwnRows | None = None) -> Cluster:
    """Return a cluster; its GPU is one that is known, or of the same file.

    Raises:
        EstimateError: no such cluster, or a file with several.
    """
    meant, row = find("clusters", name, own)
    gpus = rows("gpus", own)
    if row.own:
        gpus |= _own("gpus", row.own)
    gpu = gpus.get(row.entry["gpu"])
    if own and gpu and gpu.own:
        own.taken[f"GPU {row.entry['gpu']}"] = gpu.own
    return _cluster(meant, row, _gpus(gpus))


def load_clusters(own: OwnRows | None = None) -> dict[str, Cluster]:
    """Return every cluster."""
    gpus = load_gpus(own)
    return {
        name: _cluster(name, row, gpus) for name, row in rows("clusters", own).items()
    }


def load_prices(path: Path | None = None, own: OwnRows | None = None) -> list[Price]:
    """Return the prices, or those of a user's file alone."""
    from readerkit.budget.money import Price

    known = _own("prices", path) if path else rows("prices", own)
    return [Price.parse(row.entry) for row in known.values()]


def find_run(name: str, own: OwnRows | None = None) -> Run:
    """Return a published run.

    Raises:
        EstimateError: no such run, or one that no model can be asked.
    """
    meant, row = find("runs", name, own)
    return _run(meant, row.entry, own)


def load_runs(own: OwnRows | None = None) -> list[Run]:
    """Return every published run, in the order of their file."""
    return [_run(name, row.entry, own) for name, row in rows("runs", own).items()]


def _run(name: str, entry: dict[str, Any], own: OwnRows | None) -> Run:
    from readerkit.estimate.runs import Run
    from readerkit.estimate.shape import Shape

    given = entry.get("model"), entry.get("shape")
    if (given[0] is None) == (given[1] is None):
        raise EstimateError(f"{name}: got {given}, expected a model, or its shape")
    try:
        shape = Shape.parse(given[1] or find_model(str(given[0]), own))
        return Run.parse(name, entry, shape, find_cluster(entry["cluster"], own))
    except EstimateError as error:
        raise WrongUseError(f"run {name}: {error}") from None


def _gpus(found: Rows) -> dict[str, Gpu]:
    from readerkit.estimate.hardware import Gpu

    return {name: Gpu.parse(name, row.entry) for name, row in found.items()}


def _cluster(name: str, row: Row, gpus: Mapping[str, Gpu]) -> Cluster:
    from readerkit.estimate.hardware import Cluster

    try:
        return Cluster.parse(name, row.entry, gpus)
    except EstimateError as error:
        raise WrongUseError(f"{row.own}: cluster {name}: {error}") from None

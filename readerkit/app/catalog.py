"""Models, GPUs and clusters: those that ship, and a user's own files."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from readerkit.app.folders import cache_folder
from readerkit.app.parse_cache import Memo
from readerkit.content.catalog import HARDWARE, MODELS, PRICES, Hardware, ModelEntry
from readerkit.content.kind import Document, E, Kind
from readerkit.errors import ContentError, EstimateError, ReaderkitError
from readerkit.estimate.hardware import Cluster, Gpu
from readerkit.estimate.shape import Shape
from readerkit.wording.meant_name import choose

if TYPE_CHECKING:
    from readerkit.budget.money import Price

CATALOG = Path(__file__).resolve().parent.parent / "catalog"


def shipped(name: str) -> Path:
    """Return where a file of the catalog is, which ships in the package."""
    return CATALOG / name


def read_catalog(path: Path, kind: Kind[E]) -> Document[E]:
    """Return a catalog file that fits its model, from memory if it was read before.

    Raises:
        ContentError: every fault of the file.
        ReaderkitError: a file that cannot be read.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ReaderkitError(f"{path}: cannot be read: {error.strerror}") from None
    memo = Memo(cache_folder(), path)
    document = memo.parsed(data, str(path), kind)
    memo.save()
    if not document.entries and not document.faults:
        document.faults.append(document.fault((), "the file is empty"))
    if document.faults:
        raise ContentError(document.faults)
    return document


@cache
def _read_shipped(name: str, kind: Kind[E]) -> Document[E]:
    """Return a file of the catalog, which no run sees change: a page asks 40 times."""
    return read_catalog(shipped(name), kind)


def load_gpus() -> dict[str, Gpu]:
    """Return the GPUs that ship."""
    return _gpus(_read_shipped("hardware.yaml", HARDWARE).value)


def load_clusters() -> dict[str, Cluster]:
    """Return the clusters that ship."""
    hardware = _read_shipped("hardware.yaml", HARDWARE).value
    return _clusters(hardware, _gpus(hardware))


def load_prices(path: Path | None = None) -> list[Price]:
    """Return the prices that ship, or those of a user's file."""
    from readerkit.budget.money import Price

    rows = read_catalog(path or shipped("prices.yaml"), PRICES).value.prices
    return [Price.parse(to_builtins(row)) for row in rows]


def find_gpu(name: str) -> Gpu:
    """Return a GPU that ships, or the one in a user's file.

    Raises:
        EstimateError: no such GPU, with the near ones; or a file with several.
    """
    if not _is_file(name):
        gpus = load_gpus()
        return gpus[choose("GPU", name, gpus)]
    own = _gpus(read_catalog(Path(name), HARDWARE).value)
    if len(own) != 1:
        raise EstimateError(
            f"{name}: got {len(own)} GPUs, expected the one to work with"
        )
    return next(iter(own.values()))


def find_cluster(name: str) -> Cluster:
    """Return a cluster that ships, or the one in a user's file.

    Raises:
        EstimateError: no such cluster, or a file with several.
    """
    if not _is_file(name):
        clusters = load_clusters()
        return clusters[choose("cluster", name, clusters)]
    own = read_catalog(Path(name), HARDWARE).value
    clusters = _clusters(own, load_gpus() | _gpus(own))
    if len(clusters) != 1:
        raise EstimateError(
            f"{name}: got {len(clusters)} clusters, expected the one to work with"
        )
    return next(iter(clusters.values()))


def find_model(name: str) -> dict[str, Any]:
    """Return the sizes of a model that ships, or of the one in a user's file.

    Raises:
        EstimateError: no such model, or a file with several.
    """
    if not _is_file(name):
        models = _models(_read_shipped("models.yaml", MODELS))
        return dict(models[choose("model", name, models)].shape)
    models = _models(read_catalog(Path(name), MODELS))
    if len(models) != 1:
        raise EstimateError(
            f"{name}: got {len(models)} models, expected the one to work with"
        )
    return dict(next(iter(models.values())).shape)


def load_models() -> dict[str, tuple[Shape, str]]:
    """Return the models that ship, each with its source."""
    models = _models(_read_shipped("models.yaml", MODELS))
    return {
        name: (
            Shape.parse(entry.shape),
            entry.source + f" ({entry.dated})" * bool(entry.dated),
        )
        for name, entry in models.items()
    }


def _models(document: Document[ModelEntry]) -> dict[str, ModelEntry]:
    return {str(name): entry for (name,), entry in document.entries.items()}


def _is_file(name: str) -> bool:
    return name.endswith((".yaml", ".yml"))


def _gpus(hardware: Hardware) -> dict[str, Gpu]:
    return {
        name: Gpu.parse(name, to_builtins(entry))
        for name, entry in hardware.gpus.items()
    }


def _clusters(hardware: Hardware, gpus: Mapping[str, Gpu]) -> dict[str, Cluster]:
    return {
        name: Cluster.parse(name, to_builtins(entry), gpus)
        for name, entry in hardware.clusters.items()
    }

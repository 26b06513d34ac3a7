"""Models, GPUs and clusters: those that ship, and a user's own files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from readerkit.choosing import choose
from readerkit.content.catalog import HARDWARE, MODELS
from readerkit.content.kind import E, Kind
from readerkit.errors import ContentError, EstimateError, ReaderkitError
from readerkit.estimate.hardware import Cluster, Gpu
from readerkit.estimate.shape import Shape

CATALOG = Path(__file__).resolve().parent.parent / "catalog"


def shipped(name: str) -> Path:
    """Return where a file of the catalog is, which ships in the package."""
    return CATALOG / name


def read_catalog(path: Path, kind: Kind[E]) -> E:
    """Return what a catalog file holds.

    Raises:
        ContentError: every fault of the file.
        ReaderkitError: a file that cannot be read.
    """
    from readerkit.content.read import read_document

    try:
        data = path.read_bytes()
    except OSError as error:
        raise ReaderkitError(f"{path}: cannot be read: {error.strerror}") from None
    document = read_document(data, str(path), kind)
    if not data.strip() and not document.faults:
        document.faults.append(document.fault((), "the file is empty"))
    if document.faults:
        raise ContentError(document.faults)
    return document.value


def load_gpus() -> dict[str, Gpu]:
    """Return the GPUs that ship."""
    value = read_catalog(shipped("hardware.yaml"), HARDWARE)
    return {name: Gpu.parse(name, entry) for name, entry in value["gpus"].items()}


def load_clusters() -> dict[str, Cluster]:
    """Return the clusters that ship."""
    value = read_catalog(shipped("hardware.yaml"), HARDWARE)
    return _clusters(value, load_gpus())


def find_gpu(name: str) -> Gpu:
    """Return a GPU that ships.

    Raises:
        ReaderkitError: no such GPU; the message names the near ones.
    """
    gpus = load_gpus()
    return gpus[choose("GPU", name, gpus)]


def find_cluster(name: str) -> Cluster:
    """Return a cluster that ships, or the one in a user's file.

    Raises:
        EstimateError: no such cluster, or a file with several.
    """
    if not _is_file(name):
        clusters = load_clusters()
        return clusters[choose("cluster", name, clusters)]
    value = read_catalog(Path(name), HARDWARE)
    own = {key: Gpu.parse(key, entry) for key, entry in value.get("gpus", {}).items()}
    clusters = _clusters(value, load_gpus() | own)
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
        models = read_catalog(shipped("models.yaml"), MODELS)
        return dict(models[choose("model", name, models)]["shape"])
    models = read_catalog(Path(name), MODELS)
    if len(models) != 1:
        raise EstimateError(
            f"{name}: got {len(models)} models, expected the one to work with"
        )
    return dict(next(iter(models.values()))["shape"])


def load_models() -> dict[str, tuple[Shape, str]]:
    """Return the models that ship, each with its source."""
    models = read_catalog(shipped("models.yaml"), MODELS)
    return {
        name: (Shape.parse(entry["shape"]), entry["source"])
        for name, entry in models.items()
    }


def _is_file(name: str) -> bool:
    return name.endswith((".yaml", ".yml"))


def _clusters(value: Mapping[str, Any], gpus: Mapping[str, Gpu]) -> dict[str, Cluster]:
    return {
        name: Cluster.parse(name, entry, gpus)
        for name, entry in value.get("clusters", {}).items()
    }

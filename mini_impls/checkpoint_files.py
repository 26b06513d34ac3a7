"""The files of a checkpoint: boxes of tensors, and last what says where each is.

A rank writes one file, box after box. Rank 0 then writes the metadata and gives the
whole its name, in an order that leaves either no checkpoint or a whole one, whenever
the processes are killed or the power fails. A reader holds each box against its digest.

Follows:
- pytorch/pytorch: torch/distributed/checkpoint/filesystem.py

Leaves out:
- several files a rank, threads that write them, tensors compressed on their way
- pickled tensors and metadata: here bytes of a box, and JSON
- other places than a folder of a file system that all ranks see
"""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mini_impls.checkpoint_plan import (
    HeldTensor,
    SavePlan,
    TensorBox,
    WriteItem,
    create_read_items,
)

METADATA = "metadata.json"

# --- 1. write: each rank its file ---


@dataclass(frozen=True, slots=True)
class WriteResult:
    """Where a box went, and what tells that it is all there."""

    item: WriteItem
    file: str
    start: int
    sha256: str


def write_data(
    directory: Path, rank: int, plan: SavePlan, state: Mapping[str, HeldTensor]
) -> list[WriteResult]:
    """Write this rank's file; it is on disk when this returns."""
    results = []
    with (directory / f"rank-{rank:05}.bin").open("xb") as file:
        for item in plan:
            data = state[item.name].data.detach().cpu().contiguous()
            data_bytes = data.flatten().view(torch.uint8).numpy().tobytes()
            digest = hashlib.sha256(data_bytes).hexdigest()
            name = Path(file.name).name
            results.append(WriteResult(item, name, file.tell(), digest))
            file.write(data_bytes)
        file.flush()
        os.fsync(file.fileno())
    return results


# --- 2. publish: metadata last, and only then the name ---


def publish(
    aside: Path,
    directory: Path,
    results: list[list[WriteResult]],
    extra: Mapping[str, Any],
) -> None:
    """Write what says where everything is, then give the whole its name."""
    tensors: dict[str, Any] = {}
    for result in (result for of_rank in results for result in of_rank):
        item, box = result.item, result.item.box
        entry = {"size": item.size, "dtype": item.dtype, "boxes": []}
        where = {"file": result.file, "start": result.start, "bytes": item.bytes()}
        cut = {"offsets": box.offsets, "sizes": box.sizes, "sha256": result.sha256}
        tensors.setdefault(item.name, entry)["boxes"].append(where | cut)
    body = json.dumps({"extra": extra, "tensors": tensors}, indent=1)
    with (aside / METADATA).open("x") as file:
        file.write(f"{hashlib.sha256(body.encode()).hexdigest()}\n{body}")
        file.flush()
        os.fsync(file.fileno())
    sync_directory(aside)  # the names of all files in it, before its own
    aside.rename(directory)
    sync_directory(directory.parent)


def sync_directory(directory: Path) -> None:
    """Bring the names in a directory to disk: a rename alone is in memory."""
    descriptor = os.open(directory, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


# --- 3. read: what is needed here, whoever wrote it ---


def read_metadata(directory: Path) -> dict[str, Any]:
    """Return what `publish` wrote, held against its digest."""
    digest, _, body = (directory / METADATA).read_text().partition("\n")
    if hashlib.sha256(body.encode()).hexdigest() != digest:
        raise ValueError(f"{directory / METADATA} is not what was written")
    metadata: dict[str, Any] = json.loads(body)
    return metadata


def read_state(directory: Path, state: Mapping[str, HeldTensor]) -> dict[str, Any]:
    """Fill the state in place from the files and return the `extra`; sends nothing.

    Raises:
        ValueError: a file that is not what was written, or another model's tensors;
            what was read before it stays in the state.
    """
    metadata = read_metadata(directory)
    stored: dict[str, dict[TensorBox, dict[str, Any]]] = {}
    for name, entry in metadata["tensors"].items():
        if name in state and tuple(entry["size"]) != state[name].size:
            saved, here = tuple(entry["size"]), state[name].size
            raise ValueError(f"{name}: {saved} in {directory}, {here} here")
        stored[name] = {
            TensorBox(tuple(box["offsets"]), tuple(box["sizes"])): box
            for box in entry["boxes"]
        }
    for read in create_read_items(
        state, {n: list(boxes) for n, boxes in stored.items()}
    ):
        dtype = getattr(torch, metadata["tensors"][read.name]["dtype"])
        saved_box = read_box(directory, stored[read.name][read.stored], dtype)
        held = state[read.name]
        target = read.part.cut_out_of(held.data, held.box())
        target.copy_(read.part.cut_out_of(saved_box, read.stored))  # (n, m)
    return dict(metadata["extra"])


def read_box(directory: Path, where: Mapping[str, Any], dtype: torch.dtype) -> Tensor:
    """Return one written box, all of it: its digest is of all of it."""
    with (directory / where["file"]).open("rb") as file:
        file.seek(where["start"])
        data = bytearray(file.read(where["bytes"]))
    if hashlib.sha256(data).hexdigest() != where["sha256"]:
        raise ValueError(
            f"{directory / where['file']}: {len(data)} of {where['bytes']} bytes from "
            f"{where['start']} on are not what was written"
        )
    if not data:
        return torch.empty(where["sizes"], dtype=dtype)
    return torch.frombuffer(data, dtype=dtype).view(where["sizes"])

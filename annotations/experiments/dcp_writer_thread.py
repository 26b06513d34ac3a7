"""What becomes of an error in a thread of FileSystemWriter: the only one, a second."""

import json
import tempfile
import threading

import torch
import torch.distributed.checkpoint as dcp

RANKS = 1
threading.excepthook = lambda error: None
failed = threading.Event()


class Failing(dcp.DefaultSavePlanner):
    def resolve_data(self, item):
        if (threading.current_thread() is threading.main_thread()) == (threads == 1):
            failed.set()
            raise OSError("no space left")
        failed.wait()
        return super().resolve_data(item)


def outcome(act, **storage):
    try:
        act({f"w{i}": torch.ones(4) for i in range(4)}, no_dist=True, **storage)
    except dcp.api.CheckpointException:
        return "raises"
    return "returns"


for threads, name in ((1, "only"), (2, "second")):
    path = tempfile.mkdtemp()
    writer = dcp.FileSystemWriter(path, thread_count=threads)
    found = {"save": outcome(dcp.save, storage_writer=writer, planner=Failing())}
    if found["save"] == "returns":
        reader = dcp.FileSystemReader(path)
        found["listed"] = len(reader.read_metadata().storage_data)
        found["load"] = outcome(dcp.load, storage_reader=reader)
    print(name, "=", json.dumps(found))

"""What training sees of a save in a thread that fails, or that is still under way."""

import json
import tempfile
import threading
import warnings

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

RANKS = 1

go_on = threading.Event()


class Failing(dcp.FileSystemWriter):
    def write_data(self, *args):
        raise OSError("no room")


class Waiting(dcp.FileSystemWriter):
    def write_data(self, *args):
        go_on.wait()
        return super().write_data(*args)


def save(writer):
    return dcp.async_save(
        {"w": torch.ones(2)}, storage_writer=writer(tempfile.mkdtemp())
    )


dist.init_process_group("gloo")
warnings.simplefilter("ignore")
failed = save(Failing)
print("raises_when_asked =", json.dumps(type(failed.exception()).__name__))
first, second = save(Waiting), save(Waiting)
print("first_done_when_second_starts =", json.dumps(first.done()))
go_on.set()

"""Ranks that torchrun has started: whether this is one, how they meet, who speaks."""

import os
import time
import uuid
from datetime import timedelta

import torch.distributed as dist

from mini_impls.limits import START_S, complain

MEET_S = 0.05
"""How often a rank of torchrun asks whether rank 0 has named this start."""

SPEAK_S = 20.0
"""How long ranks of torchrun leave it to rank 0 to say what all of them have found."""


def is_under_torchrun() -> bool:
    """Tell whether torchrun has made this process a rank."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def of_this_start(shared: dist.Store, rank: int, world_size: int) -> dist.Store:
    """Return a part of a store that no start of these ranks before this one has had.

    The agent keeps its store when it starts workers again, with the addresses of those
    that are gone. No number of starts will do for a name: each agent counts its own. So
    rank 0 names this one, and only answers of ranks that are alive let it begin: each
    waits until its own, made this moment, is among those that rank 0 has heard.
    """
    shared.set_timeout(timedelta(seconds=START_S))
    mine = uuid.uuid4().hex
    if rank == 0:
        shared.set("start", mine)
        alive = [shared.get(f"{mine}/{r}").decode() for r in range(1, world_size)]
        shared.set(f"{mine}/heard", " ".join(alive))
        return dist.PrefixStore(mine, shared)
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        start = shared.get("start").decode()  # of this start, or still of the last one
        shared.set(f"{start}/{rank}", mine)
        heard = f"{start}/heard"
        if shared.check([heard]) and mine in shared.get(heard).decode():
            return dist.PrefixStore(start, shared)
        time.sleep(MEET_S)
    raise TimeoutError(f"rank {rank} has not met rank 0 in {START_S:.0f} s")


def ranks_of(wanted: int | None) -> int:
    """Return how many ranks there will be: torchrun's, the user's choice, or two.

    Raises:
        ValueError: a choice that contradicts torchrun.
    """
    if not is_under_torchrun():
        return 2 if wanted is None else wanted
    launched = int(os.environ["WORLD_SIZE"])
    if wanted not in (None, launched):
        raise ValueError(f"--world {wanted} under torchrun with {launched}")
    return launched


def complain_once(program: str, error: Exception) -> int:
    """Say once what every rank has found; return the exit status."""
    if is_under_torchrun() and os.environ["RANK"] != "0":
        time.sleep(SPEAK_S)  # rank 0 says it, and with its end torchrun ends the others
        return 1
    return complain(program, error)

"""What a sum for the mean, copies in the norm, and one rank's inf do to a gradient."""

import json

import torch
import torch.distributed as dist

RANKS = 2

dist.init_process_group("gloo")
rank = dist.get_rank()
own = torch.tensor([3.0, 4.0])  # the same rows on each rank, as of one batch in halves


def norm(gradient, *, counted_on_each=False):
    """Return the norm of all gradients; of a replica once, or wherever it is."""
    squares = gradient.square().sum() * (1.0 if counted_on_each or rank == 0 else 0.0)
    dist.all_reduce(squares)
    return squares.sqrt().item()


total = own.clone()
dist.all_reduce(total)
mean = total / 2
ratios = [norm(total) / norm(mean), norm(mean, counted_on_each=True) / norm(mean)]
spoilt = torch.tensor([1.0, float("inf") if rank == 1 else 1.0])
dist.all_reduce(spoilt)
finite, both = bool(spoilt.isfinite().all()), [None, None]
dist.all_gather_object(both, finite)
if rank == 0:
    print(f"sum = {ratios[0]}")
    print(f"copies = {round(ratios[1], 3)}")
    print(f"finite_behind_the_sum = {json.dumps(both)}")
dist.destroy_process_group()

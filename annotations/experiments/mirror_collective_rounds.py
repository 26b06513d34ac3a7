"""Rounds of messages and elements sent by one of eight ranks, nothing really sent."""

import torch

from mini_impls import collectives, collectives_log

UPSTREAMS = ["minis"]
W, N, RANK = 8, 64, 3


class Group:
    rank = staticmethod(lambda: RANK)
    size = staticmethod(lambda: W)


def noting(send, dst, recv, src, group):
    sent.append(0 if send is None else send.numel())
    return []


collectives.exchange = collectives_log.exchange = noting
chunks = [*torch.zeros(N).chunk(W)]
runs = {
    "ring": lambda: collectives.ring_all_reduce(torch.zeros(N), Group),
    "ring_reduce_scatter": lambda: collectives.ring_reduce_scatter(chunks, Group),
    "halving": lambda: collectives_log.halving_doubling_all_reduce(
        torch.zeros(N), Group
    ),
    "naive": lambda: collectives.naive_all_reduce(torch.zeros(N), Group),
    "all_to_all": lambda: collectives.pairwise_all_to_all(chunks, chunks, Group),
    "tree_root": lambda: collectives_log.tree_broadcast(torch.zeros(N), RANK, Group),
}
for name, run in runs.items():
    sent = []
    run()
    print(name, "=", [len(sent), sum(sent)])

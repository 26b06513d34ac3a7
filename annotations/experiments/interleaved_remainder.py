"""Steps that four ranks lose to a last group, by Megatron's own table and warm-up."""

from types import SimpleNamespace as Made

from megatron.core.pipeline_parallel import schedules as s

RANKS = 1
UPSTREAMS = ["megatron"]


def get_order(rank, p, v, m, size):
    group = Made(size=lambda: p, rank=lambda: rank)
    peer = Made(pp_group=group, virtual_pipeline_model_parallel_size=v)
    warm = s.get_pp_rank_microbatches(m, v, size, p2p_communicator=peer)[2]
    table = s.get_schedule_table(m, v, size)
    forward = [("F", at, chunk * p + rank) for at, chunk in table]
    backward = [("B", at, (v - 1 - chunk) * p + rank) for at, chunk in table]
    steady = sum(zip(forward[warm:], backward, strict=False), ())
    return [*forward[:warm], *steady, *backward[len(steady) // 2 :]]


def lost(v, m, size, p=4):
    """Return the steps lost where each piece takes one, or None in a circle."""
    todo, over, step = [get_order(rank, p, v, m, size) for rank in range(p)], set(), 0
    while any(todo):
        ready = []
        for kind, at, stage in (rank[0] for rank in todo if rank):
            turn = ("F", at, stage) if stage == p * v - 1 else ("B", at, stage + 1)
            needed = turn if kind == "B" else ("F", at, stage - 1)
            if needed in over or (kind, stage) == ("F", 0):
                ready.append(stage % p)
        if not ready:
            return None
        over.update([todo[rank].pop(0) for rank in ready])
        step += 1
    return step - 2 * m * v


for v, m, size in ((2, 8, 4), (2, 10, 5), (2, 10, 6), (2, 10, 4), (3, 9, 4)):
    print(f"v{v}_m{m}_groups_of_{size} =", lost(v, m, size) or "null")

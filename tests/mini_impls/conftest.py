"""Pools of ranks, one for each world size, shared by the whole session."""

from collections.abc import Iterator

import pytest
import torch
from ranks import RankPool


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    """Sum in one order, as the ranks do."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def pool2() -> Iterator[RankPool]:
    """Two ranks."""
    pool = RankPool(2)
    yield pool
    pool.close()


@pytest.fixture(scope="session")
def pool3() -> Iterator[RankPool]:
    """Three ranks."""
    pool = RankPool(3)
    yield pool
    pool.close()


@pytest.fixture(scope="session")
def pool4() -> Iterator[RankPool]:
    """Four ranks."""
    pool = RankPool(4)
    yield pool
    pool.close()


@pytest.fixture(scope="session", params=[2, 3])
def few_ranks(request: pytest.FixtureRequest) -> RankPool:
    """Two ranks, then three, which divide less; for drawn tests, too."""
    chosen = request.getfixturevalue(f"pool{request.param}")
    assert isinstance(chosen, RankPool)
    return chosen


@pytest.fixture(params=[2, 4])
def pool(request: pytest.FixtureRequest) -> RankPool:
    """Two ranks, then four."""
    chosen = request.getfixturevalue(f"pool{request.param}")
    assert isinstance(chosen, RankPool)
    return chosen

"""Pools of ranks, one for each world size, shared by the whole session."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from ranks import RankPool

HERE = Path(__file__).parent
POOLS = {size: RankPool(size) for size in (2, 3, 4)}


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """End the ranks before a test of others: idle ones look about, too.

    A pool starts again when it is asked again.
    """
    if nextitem is None or not nextitem.path.is_relative_to(HERE):
        for pool in POOLS.values():
            pool.close()


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    """Sum in one order, as the ranks do."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def pool2() -> Iterator[RankPool]:
    """Two ranks."""
    yield POOLS[2]
    POOLS[2].close()


@pytest.fixture(scope="session")
def pool3() -> Iterator[RankPool]:
    """Three ranks."""
    yield POOLS[3]
    POOLS[3].close()


@pytest.fixture(scope="session")
def pool4() -> Iterator[RankPool]:
    """Four ranks."""
    yield POOLS[4]
    POOLS[4].close()


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

"""When Python looks for cycles of garbage: not while it imports, and not in that."""

import gc

from readerkit.system.garbage import kept, uncollected


def test_none_are_looked_for_inside():
    with uncollected():
        assert not gc.isenabled()
        with uncollected():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_what_is_kept_is_looked_through_no_more():
    try:
        with kept():
            made = [[] for _ in range(10)]
        assert gc.isenabled()
        assert not any(each is made for each in gc.get_objects())
    finally:
        gc.unfreeze()

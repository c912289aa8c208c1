"""The map of held messages stays sorted by offset, in whatever order they come and go."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mqlab.client import MessageExt
from mqlab.client.consumer.tree_map import TreeMap

STEPS = st.lists(st.tuples(st.sampled_from(["put", "pop", "poll", "clear"]), st.integers(0, 12)), max_size=40)


@given(STEPS)
def test_it_agrees_with_a_dict_that_is_sorted_at_every_step(steps: list[tuple[str, int]]) -> None:
    tree, plain = TreeMap(), dict[int, MessageExt]()
    for verb, offset in steps:
        if verb == "put":
            message = MessageExt("T", b"x", queue_offset=offset)
            tree.put(offset, message)
            plain[offset] = message
        elif verb == "pop":
            assert tree.pop(offset, None) is plain.pop(offset, None)
        elif verb == "clear":
            tree.clear()
            plain.clear()
        elif plain:
            assert tree.poll_first_entry() == (min(plain), plain.pop(min(plain)))
        assert list(tree.items()) == sorted(plain.items())
        if plain:
            assert (tree.first_key(), tree.last_key()) == (min(plain), max(plain))

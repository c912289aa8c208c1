"""A state is folded from events by methods that are named for them."""

from __future__ import annotations

import pytest

from mqlab import Lab
from mqlab.errors import LearnerError
from mqlab.trace.record import Record
from mqlab.trace.state import State


class Ended(State):
    """The processes that are no more."""

    def begin(self) -> None:
        self.names: list[str] = []

    def on_process_ended(self, record: Record) -> None:
        self.names.append(record.target)


def test_a_crash_and_a_loss_of_power_end_a_process() -> None:
    lab = Lab(seed=7)
    for name in ("namesrv-1", "namesrv-2"):
        lab.name_server(name)
    lab.crash("namesrv-1")
    lab.power_off("namesrv-2")
    ended = Ended()
    assert len(list(ended.follow(lab.history))) == len(lab.history)
    assert ended.names == ["namesrv-1", "namesrv-2"]


def test_a_record_is_taken_before_it_is_given_back() -> None:
    lab = Lab(seed=7)
    lab.name_server("namesrv-1")
    lab.crash("namesrv-1")
    ended = Ended()
    seen = {record.kind: list(ended.names) for record in ended.follow(lab.history)}
    assert seen["NodeCrashed"] == ["namesrv-1"]


def test_a_misspelt_method_is_told_with_the_right_name() -> None:
    class Misspelt(State):
        def on_message_store(self, record: Record) -> None: ...

    with pytest.raises(LearnerError, match="did you mean on_message_stored"):
        Misspelt().handlers()

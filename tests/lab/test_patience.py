"""The limit for code that does not come to an end breaks off nothing that comes behind it."""

from __future__ import annotations

import threading
import time

from mqlab.check.patience import EndlessLoop, Patience, not_counted


class ReachedJustNow(threading.Event):
    """Setting it is broken off once, as anything may be that runs while the watch is on."""

    broken_off = False

    def set(self) -> None:
        if not self.broken_off:
            self.broken_off = True
            raise EndlessLoop
        super().set()


def test_a_limit_that_is_reached_while_the_code_ends_leaves_no_watch_behind() -> None:
    patience = Patience(1_000)
    with patience:
        ended = patience._over
        patience._over = ReachedJustNow()
    assert patience._over.is_set()
    ended.set()


def compute_for(seconds: float) -> None:
    end_s = time.process_time() + seconds
    while time.process_time() < end_s:
        pass


def test_what_a_judge_does_for_itself_is_not_counted_and_what_comes_behind_it_is() -> None:
    seen = []
    try:
        with Patience(0.3):
            with not_counted():
                compute_for(0.9)
            seen.append("judged")
            compute_for(30)
    except EndlessLoop:
        seen.append("broken off")
    assert seen == ["judged", "broken off"]

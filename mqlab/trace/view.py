"""Views: a picture of the world as a fold over its events, which can be moved forward and back without a replay."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from .history import History
from .matching import Kinds, row_filter
from .record import Record

S = TypeVar("S")

KEYFRAME_EVENTS = 1_000


class View(ABC, Generic[S]):
    """How a picture grows: it begins as `initial()`, and each event makes the next picture by `step`.

    `kinds` are the events that change it (None: all); the others are passed over. The state must be of a type that
    `copy.deepcopy` copies; `step` may change it in place, or return a new one.
    """

    kinds: Kinds = None

    @abstractmethod
    def initial(self) -> S:
        """The picture before anything has happened."""

    @abstractmethod
    def step(self, state: S, record: Record) -> S:
        """The picture after one more event."""


class Folded(Generic[S]):
    """A view laid over a history: `state` is the picture after `position` events.

    A copy of the state is kept every 1,000 events, so that going back folds no more events than lie between two copies.
    Look at the state, do not change it.
    """

    def __init__(self, view: View[S], history: History) -> None:
        self.view = view
        self._history = history
        self._matches = row_filter(view.kinds)
        self._keyframes: list[S] = [view.initial()]
        self.position = 0
        self.state: S = copy.deepcopy(self._keyframes[0])

    def seek(self, position: int) -> S:
        """Move to the picture after `position` events (it stops at both ends), and return it."""
        target = max(0, min(position, len(self._history)))
        keyframe = min(target // KEYFRAME_EVENTS, len(self._keyframes) - 1)
        if not keyframe * KEYFRAME_EVENTS <= self.position <= target:
            self.position = keyframe * KEYFRAME_EVENTS
            self.state = copy.deepcopy(self._keyframes[keyframe])
        while self.position < target:
            end = min(target, (self.position // KEYFRAME_EVENTS + 1) * KEYFRAME_EVENTS)
            self._fold(end)
            if end == len(self._keyframes) * KEYFRAME_EVENTS:
                self._keyframes.append(copy.deepcopy(self.state))
        return self.state

    def _fold(self, end: int) -> None:
        for row in self._history.rows(self.position, end):
            if self._matches(row):
                self.state = self.view.step(self.state, Record(row))
        self.position = end

    def forward(self, events: int = 1) -> S:
        """Move some events on."""
        return self.seek(self.position + events)

    def back(self, events: int = 1) -> S:
        """Move some events back."""
        return self.seek(self.position - events)

    def to_end(self) -> S:
        """Move to the newest event of the history."""
        return self.seek(len(self._history))

"""A viewer whose screen clock the test moves: what a page would be sent, without waiting."""

from __future__ import annotations

import asyncio
from typing import Any

from mqlab import Lab
from mqlab_widgets.session import Session


class Time:
    """A clock that goes on when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)


class Screen:
    """A session, what it was told, and how often it had to draw the whole picture."""

    def __init__(self, lab: Lab, time: Time | None = None) -> None:
        self.lab = lab
        self.beats: list[dict[str, Any]] = []
        self.batches: list[tuple[int, list[dict[str, Any]]]] = []
        self.changes = 0
        self.session = Session(lab, changed=self._changed, on_story=self._on_story)
        self.session.story.shown(self.session.scene())
        player = self.session.player
        self.time = time or Time()
        player.clock, player.sleep = self.time, self.time.sleep

    def _changed(self) -> None:
        self.changes += 1

    def _on_story(self, beats: list[dict[str, Any]], began: int) -> None:
        self.beats += beats
        self.batches.append((began, beats))

    def do(self, command: str, **arguments: Any) -> str:
        """A command, and what was said to it."""
        self.session.do({"do": command, **arguments})
        return self.session.said

    async def watch(self, seconds: float) -> None:
        """Let so much time pass on the screen, or less if playing stops."""
        end = self.time.now + seconds
        while self.session.playing and self.time.now < end:
            await asyncio.sleep(0)

    def played(self, seconds: float) -> Screen:
        """Press play, watch, and press pause."""

        async def cell() -> None:
            self.do("play")
            await self.watch(seconds)
            self.session.player.pause()

        asyncio.run(cell())
        return self

    @property
    def cursor(self) -> int:
        return self.lab.history.cursor

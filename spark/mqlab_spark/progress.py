"""What Spark does while one waits, as one bar: of tasks, or of steps that each take many tasks.

    with tasks_bar(spark):
        audit.count()

In a notebook that somebody has open nothing need be written: `session()` has every cell watched in which Spark works
for more than half a second. Where nobody looks nothing is drawn and no thread is started (see `mqlab.progress`).
On Spark Connect the server tells of its tasks; else a thread asks Spark four times a second.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

from pyspark.sql import SparkSession

from mqlab.progress import NOTEBOOK, Bar, bar, place
from mqlab_spark.remote import is_remote

ASK_EVERY_S = 0.25

Report = Callable[[int, int], None]
"""Told again and again: how many tasks have ended, of how many that are known."""


@contextmanager
def tasks_bar(spark: SparkSession) -> Iterator[Bar]:
    """A bar of the tasks that Spark has while the block runs; their number grows from stage to stage."""
    with bar("tasks", 1) as shown, watched(spark, lambda done, known: shown.to(done, total=known)):
        yield shown


@contextmanager
def steps_bar(spark: SparkSession, unit: str, total: int) -> Iterator[Callable[[str], AbstractContextManager[None]]]:
    """A bar of steps: what it gives is called with the name of a step that has ended, to print inside what it came to.

    The step that Spark works at is filled as its tasks end.
    """
    ended = 0
    before = 0

    def report(done: int, known: int) -> None:
        own, of = done - before, known - before
        shown.to(ended + (min(own / of, 0.99) if of else 0), f"{own:,} of {of:,} tasks")

    @contextmanager
    def step(name: str) -> Iterator[None]:
        nonlocal ended, before
        ended += 1
        before = watch.known
        with shown.aside():
            yield
        shown.to(ended, name)

    with bar(unit, total) as shown, watched(spark, report) as watch:
        yield step


@contextmanager
def watched(spark: SparkSession, report: Report) -> Iterator[Watch]:
    """Have Spark's tasks reported while the block runs; where nobody looks, nothing is asked."""
    watch = RemoteWatch(spark, report) if is_remote(spark) else LocalWatch(spark, report)
    if place() is None:
        yield watch
        return
    watch.start()
    try:
        yield watch
    finally:
        watch.stop()


class Watch:
    """Tasks of a session since it began to watch."""

    def __init__(self, spark: SparkSession, report: Report) -> None:
        self._spark = spark
        self._report = report
        self._stages: dict[Any, tuple[int, int]] = {}

    @property
    def known(self) -> int:
        """How many tasks there were so far."""
        return sum(of for _, of in self._stages.values())

    def start(self) -> None:
        """Begin to show a bar for the jobs of a session."""

    def stop(self) -> None:
        """Take the bar away."""

    def _tell(self) -> None:
        if self._stages:
            self._report(sum(done for done, _ in self._stages.values()), self.known)


class LocalWatch(Watch):
    """Asks the driver, which is at hand."""

    def start(self) -> None:
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mqlab-spark-progress", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            tracker = self._spark.sparkContext.statusTracker()
            jobs: set[int] = set()
            while not self._ended.wait(ASK_EVERY_S):
                jobs.update(tracker.getActiveJobsIds())
                jobs = {job for job in jobs if self._has_more(tracker, job)}
                self._tell()
        except Exception:  # noqa: BLE001  a session that ends meanwhile says so in many ways, and a bar is only a bar
            return

    def _has_more(self, tracker: Any, job: int) -> bool:
        """Note how far the stages of a job are; will there be more to note?"""
        info = tracker.getJobInfo(job)
        for stage in info.stageIds if info is not None else ():
            found = tracker.getStageInfo(stage)
            if found is not None:
                self._stages[stage] = (found.numCompletedTasks, found.numTasks)
        return info is not None and info.status == "RUNNING"


class RemoteWatch(Watch):
    """Is told by the server of Spark Connect."""

    def start(self) -> None:
        self._spark.registerProgressHandler(self._told)  # type: ignore[arg-type]  # a function will do

    def stop(self) -> None:
        self._spark.removeProgressHandler(self._told)  # type: ignore[arg-type]  # a function will do

    def _told(self, stages: Any, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        for stage in stages or ():
            self._stages[operation_id, stage.stage_id] = (stage.num_completed_tasks, stage.num_tasks)
        self._tell()


# -- cells of a notebook -----------------------------------------------------------------------------------------------


class _Cells:
    """One bar for each cell in which Spark works."""

    def __init__(self) -> None:
        self._session: SparkSession | None = None
        self._cell: ExitStack | None = None

    def watch(self, spark: SparkSession, events: Any) -> None:
        if self._session is None:
            events.register("pre_run_cell", self._begin)
            events.register("post_run_cell", self._end)
        self._session = spark

    def _begin(self, *_: object) -> None:
        self._end()
        if self._session is not None and place() == NOTEBOOK:
            self._cell = ExitStack()
            self._cell.enter_context(_cell_bar(self._session))

    def _end(self, *_: object) -> None:
        cell, self._cell = self._cell, None
        if cell is not None:
            cell.close()


@contextmanager
def _cell_bar(spark: SparkSession) -> Iterator[None]:
    """A bar that is there from the first task on that Spark is seen to have."""
    with ExitStack() as opened:
        shown: list[Bar] = []

        def report(done: int, known: int) -> None:
            if not shown:
                shown.append(opened.enter_context(bar("tasks", known)))
            shown[0].to(done, total=known)

        with watched(spark, report):
            yield


_cells = _Cells()


def watch_cells(spark: SparkSession) -> None:
    """Show a bar in every cell of this notebook in which Spark works; elsewhere this does nothing."""
    if place() == NOTEBOOK:
        from IPython import get_ipython

        _cells.watch(spark, get_ipython().events)

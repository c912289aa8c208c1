"""A data set that a process of its own makes while somebody reads, and looks at its first worlds already.

    data = begin(recipe("lost-orders", "power-cuts", worlds=107, first_seed=700, faults=["power_off"], sealed=True))
    read_trace(spark, data.first())       # one world, as soon as it is there
    read_trace(spark, data.whole())       # all of them

The process is `mqlab dataset`, so what it makes is what that command makes. It ends with this one.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyspark.sql import DataFrame

from mqlab import data_sets
from mqlab.data_sets.named_worlds import world_of
from mqlab.errors import LearnerError
from mqlab.progress import bar
from mqlab_spark.schema import WORLD

SIZE_VARIABLE = "MQLAB_LAB_DATA"
"""The size of the labs' data sets where a lab does not say one: `million` or `small`."""

MILLION, SMALL = "million", "small"
POLL_S = 0.1

def size_of(size: str, *, small: int, million: int) -> int:
    """How many worlds a lab takes: for `size` or, where that is empty, for what MQLAB_LAB_DATA says, else a million.

    LearnerError for a size that is neither "small" nor "million".
    """
    chosen = size or os.environ.get(SIZE_VARIABLE, MILLION)
    if chosen not in (SMALL, MILLION):
        raise LearnerError(f"there is no size {chosen!r}", f'write size = "{MILLION}" or size = "{SMALL}"')
    return million if chosen == MILLION else small


def recipe(
    name: str,
    scenario: str,
    *,
    worlds: int,
    first_seed: int,
    parameters: Mapping[str, Any] | None = None,
    faults: Sequence[str] = (),
    settle_seconds: float = 0,
    sealed: bool = False,
) -> str:
    """The recipe of a data set as text, as datasets/*.toml have it; its one size has `worlds` worlds."""
    lines = {
        "title": name, "question": "What is in it?", "scenario": scenario, "first_seed": first_seed,
        "faults": list(faults), "settle_seconds": settle_seconds, "sealed": sealed,
    }  # fmt: skip
    given = "\n".join(f"{key} = {json.dumps(value)}" for key, value in (parameters or {}).items())
    told = "\n".join(f"{key} = {json.dumps(value)}" for key, value in lines.items())
    return f"# {name}.toml\n{told}\n\n[parameters]\n{given}\n\n[sizes]\n{SMALL} = {{ worlds = {worlds} }}\n"


class GrowingDataSet:
    """Worlds that come into a directory one after the other; begun by `begin`."""

    def __init__(self, text: str) -> None:
        self._directory = TemporaryDirectory(prefix="mqlab-data-")
        root = Path(self._directory.name)
        file = root / text.partition(".toml")[0].removeprefix("# ")
        file = file.with_suffix(".toml")
        file.write_text(text, encoding="utf-8")
        self.recipe = data_sets.read_recipe(file)
        self.seeds = self.recipe.seeds(SMALL)
        self._out = root / "worlds"
        self._out.mkdir()
        self._told = root / "told"
        command = ["dataset", self.recipe.name, SMALL, "--recipes", str(root), "--out", str(self._out), "--jobs", "1"]
        with self._told.open("w") as told:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "mqlab", *command], stdin=subprocess.DEVNULL, stdout=told, stderr=told
            )
        atexit.register(self.end)

    @property
    def made(self) -> int:
        """How many worlds are there."""
        return len(list(self._out.glob("*.parquet")))

    def __repr__(self) -> str:
        return f"{self.recipe.name}: {self.made:,} of {len(self.seeds):,} worlds are there"

    def first(self, number: int = 0) -> str:
        """The file of the first world, or of the one with that number; waits until it is there."""
        file = self._out / data_sets.file_name(self.seeds[number])
        self._wait(file)
        return str(file)

    def whole(self) -> str:
        """The directory with all worlds; waits until they are there, and says meanwhile how many are."""
        self._wait(self._out / data_sets.CARD)
        return str(self._out)

    def judge(self, found: DataFrame) -> dict[str, int]:
        """How many of these answers are right, wrong and missing, by the sealed list of the data set.

        `found` has the columns world, what ("lost" or "twice"), group and msg_id. LearnerError when one is missing.
        """
        wanted = (WORLD, "what", "group", "msg_id")
        missing = [column for column in wanted if column not in found.columns]
        if missing:
            raise LearnerError(f"the answers have no column {missing[0]!r}", f"they need {', '.join(wanted)}")
        self.whole()
        card = json.loads((self._out / data_sets.CARD).read_text(encoding="utf-8"))
        rows = found.select(*wanted).collect()
        answers = [(int(world_of(world).seed), what, group, key) for world, what, group, key in rows]
        return data_sets.judge(card, answers)

    def end(self) -> None:
        """Stop the process, if it is at work, and remove what it made."""
        if self._process.poll() is None:
            self._process.terminate()
            self._process.wait()
        self._directory.cleanup()

    def _wait(self, file: Path) -> None:
        with bar("worlds", len(self.seeds)) as shown:
            while not file.exists():
                if self._process.poll() not in (None, 0):
                    told = self._told.read_text(encoding="utf-8").strip()
                    raise LearnerError(f"the data set {self.recipe.name} was not made: {told}", "begin it again")
                shown.to(self.made)
                time.sleep(POLL_S)


def begin(text: str) -> GrowingDataSet:
    """Begin to make the data set of a recipe (see `recipe`) in a process of its own."""
    return GrowingDataSet(text)

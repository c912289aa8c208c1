"""Executes one lab with papermill, in a process of its own.

    python -m mqlab.labs.run_one_lab LAB OUT RESULT TIMEOUT_S [PARAMETERS]

RESULT gets one JSON object, `{"verdict": ...}`, as the last thing that happens. A run that dies leaves none, and so
can't be taken for one that went well. What papermill writes into the notebook says "completed" of cells that never ran,
so only the error that it raises counts.
"""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path
from typing import Any

from mqlab.labs.extra import without_grammar
from mqlab.labs.kernels import with_sockets_of_its_own

SAVE_EVERY_S = 5
"""While it runs, the notebook is written no more often: that took as long as half of the cells."""

_FILE_OF_A_CELL = re.compile(r"\(\d+\.py, line (\d+)\)")
"""How a SyntaxError names its place: IPython makes up a file for a cell, and another one in each process."""


def run(lab: Path, out: Path, timeout_s: int, parameters: dict[str, Any] | None = None) -> str:
    """Execute the lab into `out`; returns "ok", or in one line what ended it."""
    with without_grammar():
        import papermill
        from jupyter_client.manager import AsyncKernelManager
        from nbclient.exceptions import CellTimeoutError, DeadKernelError
        from papermill.exceptions import PapermillExecutionError

    _register_engine()
    try:
        papermill.execute_notebook(
            str(lab),
            str(out),
            parameters=parameters,
            cwd=str(out.parent),
            execution_timeout=timeout_s,
            progress_bar=False,
            engine_name="mqlab",
            # Some programs, Colab among them, save notebooks that name no kernel.
            kernel_name="python3",
            kernel_manager_class=with_sockets_of_its_own(AsyncKernelManager),
        )
    except PapermillExecutionError as failed:
        if _meant_to_raise(lab, failed):
            _remove_error_banner(out)
            return "ok"
        return f"failed: cell {failed.cell_index + 1} (In [{failed.exec_count}]): {_one_line(failed)}"
    except CellTimeoutError:
        return f"timed out: a cell ran longer than {timeout_s} s"
    except DeadKernelError:
        return "failed: the kernel died"
    return "ok"


def _register_engine() -> None:
    """Make papermill's own engine, but for how often it writes the notebook, known under the name `mqlab`."""
    from papermill.engines import NBClientEngine, papermill_engines

    class SeldomSaved(NBClientEngine):  # type: ignore[misc]  # papermill has no types
        @classmethod
        def execute_managed_notebook(cls, manager: Any, kernel_name: str, **settings: Any) -> None:
            save, next_s = manager.save, time.monotonic() + SAVE_EVERY_S

            def seldom() -> None:
                nonlocal next_s
                if time.monotonic() >= next_s:
                    save()
                    next_s = time.monotonic() + SAVE_EVERY_S

            manager.save = seldom
            try:
                super().execute_managed_notebook(manager, kernel_name, **settings)
            finally:
                # What comes now is the end, and is written.
                manager.save = save

    papermill_engines.register("mqlab", SeldomSaved)


def _meant_to_raise(lab: Path, failed: Any) -> bool:
    """Whether the last error of the run is one that the lab shows on purpose.

    papermill takes every error output for a failure, also that of a cell that carries Jupyter's tag for an intended
    one. A real failure ends the run, so it is always the last, which is the one reported.
    """
    cell = json.loads(lab.read_text(encoding="utf-8"))["cells"][failed.cell_index]
    return "raises-exception" in cell["metadata"].get("tags", ())


def _remove_error_banner(out: Path) -> None:
    """Take out the cells in which papermill announces a failure that is none."""
    notebook = json.loads(out.read_text(encoding="utf-8"))
    notebook["cells"] = [
        cell for cell in notebook["cells"] if "papermill-error-cell-tag" not in cell["metadata"].get("tags", ())
    ]
    out.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _one_line(failed: Any) -> str:
    """The error's name and the first line of its text; the place of a SyntaxError is the line of its cell."""
    first = _FILE_OF_A_CELL.sub(r"(line \1)", str(failed.evalue).partition("\n")[0])
    return f"{failed.ename}: {first}" if first else str(failed.ename)


def main(arguments: list[str]) -> int:
    """Run what the command line names, and write the result."""
    from mqlab.labs.execute import jupyter_apart

    lab, out, result, timeout_s = Path(arguments[0]), Path(arguments[1]), Path(arguments[2]), int(arguments[3])
    parameters = json.loads(arguments[4]) if arguments[4:] else None
    with jupyter_apart():
        verdict = run(lab, out, timeout_s, parameters)
    result.write_text(json.dumps({"verdict": verdict}), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

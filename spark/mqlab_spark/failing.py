"""When a command fails: one line on the terminal that says what, and the stack traces in a file that it names."""

from __future__ import annotations

import logging
import os
import re
import signal
import tempfile
import threading
import traceback
from collections.abc import Callable
from pathlib import Path

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyarrow import ArrowException
from pyspark.errors import PySparkException

from mqlab.errors import MqlabError
from mqlab.progress import say

FINE, SET_ASIDE, NOT_DONE, UNEXPECTED, INTERRUPTED = 0, 1, 2, 3, 130
"""Exit statuses. SET_ASIDE: tables were built, and not of all traces. UNEXPECTED is a defect of mqlab's; INTERRUPTED is
what shells say after Ctrl-C.
"""

STATUSES = (
    "Exit status: 0 fine, 1 tables were built, but not of every trace, 2 the command could not be carried out (bad "
    "input, or Spark, Java, Arrow or the system refused), 3 something unexpected, a defect of mqlab's, 130 after "
    "Ctrl-C. The stack traces of an error are in the file that its line names."
)

REFUSED = (PySparkException, Py4JError, ArrowException, OSError)
"""What Spark, Java, Arrow and the system raise."""

_IN_JAVA = re.compile(r"An error occurred while calling [^\n]*\n: (.*)", re.DOTALL)
_CLASS = re.compile(r"^(?:[\w$]+\.)+[\w$]+: ")
_STATE = re.compile(r"\.? +SQLSTATE: \w+$")
_CAUSE, _SEEN = "Caused by: ", "[CIRCULAR REFERENCE"
"""How Java's stacks say what caused something, and that this stands further up already."""

_UNREAD = re.compile(r"\[FAILED_READ_FILE[^\n]*")
_JAVA_STACK = "\n\nJVM stacktrace:\n"


def guarded(command: Callable[[Path], int]) -> int:
    """What a command returns; when it fails, one line is printed, and the exit status returned.

    The command is given a file for what Spark says of errors (`session(errors=...)`), in the system's directory for
    temporary files; what Python logs goes there, too. It is kept when there is something in it, and then a line names
    it.
    """
    handle, name = tempfile.mkstemp(prefix="mqlab-spark-", suffix=".log")
    os.close(handle)
    log = Path(name)
    logged = logging.FileHandler(log, encoding="utf-8")
    logged.setLevel(logging.ERROR)
    logging.getLogger().addHandler(logged)
    try:
        status = command(log)
        if log.stat().st_size:
            _say(f"done, though Spark met errors on the way: {log}")
        return status
    except MqlabError as error:
        _say(f"{error}\n  What Spark said: {log}" if log.stat().st_size else str(error))
        return NOT_DONE
    except KeyboardInterrupt:
        # Where it stood is no error; Py4J has logged it as one.
        log.write_bytes(b"")
        _say("interrupted")
        return INTERRUPTED
    except REFUSED as problem:
        return _failed(problem, log, NOT_DONE)
    except Exception as problem:  # noqa: BLE001  whatever it is, who called the command gets one line
        return _failed(problem, log, UNEXPECTED)
    finally:
        logging.getLogger().removeHandler(logged)
        logged.close()
        if not log.stat().st_size:
            log.unlink()


def interrupt_at_once() -> None:
    """Let Ctrl-C raise KeyboardInterrupt and nothing else, once there is a session.

    PySpark's own handler first asks the JVM to cancel all jobs, which fails while another answer is waited for.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


def one_line(problem: BaseException) -> str:
    """An exception in one line: what failed, and of Java's what caused it; without classes and stacks."""
    text, _, stack = str(problem).partition(_JAVA_STACK)
    java = _IN_JAVA.match(text)
    if java is None:
        plain = " ".join(_STATE.sub("", line.strip()) for line in text.splitlines() if line.strip())
        if _UNREAD.match(plain):
            return _with_cause(plain, stack or getattr(problem, "_stackTrace", None) or "")
        return plain if isinstance(problem, REFUSED) and plain else f"{type(problem).__name__}: {plain}"
    # Of several stages that failed at once the first line says how many, and only the stacks say at which file.
    unread = _UNREAD.search(java[1])
    return _with_cause(unread[0] if unread else java[1].splitlines()[0], java[1])


def _with_cause(first: str, stack: str) -> str:
    """What failed, and the last of what a stack of Java's says of its causes."""
    # Causes of what failed beside it are indented, and perhaps told there alone.
    told = [line.strip() for line in stack.splitlines()]
    causes = [_plain(line.removeprefix(_CAUSE)) for line in told if line.startswith(_CAUSE) and _SEEN not in line]
    others = [cause for cause in causes if cause != _plain(first)]
    return ", caused by ".join([_plain(first), *others[-1:]])


def _plain(line: str) -> str:
    return _STATE.sub("", _CLASS.sub("", line))


def _failed(problem: BaseException, log: Path, status: int) -> int:
    with log.open("a", encoding="utf-8") as file:
        traceback.print_exception(problem, file=file)
        java = getattr(problem, "_stackTrace", None)
        if java:
            file.write(f"{_JAVA_STACK}{java}\n")
    unexpected = "unexpected: " if status == UNEXPECTED else ""
    _say(f"{unexpected}{one_line(problem)} (stack trace: {log})")
    return status


def _say(what: str) -> None:
    say(f"mqlab_spark: {what}")

"""Files and texts from outside: whatever they are, reading them is bounded, and nothing but `Unreadable` is raised."""

from __future__ import annotations

import json
import os
import re
import stat
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Any

from mqlab.errors import MqlabError

MOST_VALUES = 1_000_000
"""More values than this, of lists and objects of all depths, are no message and no notebook."""
_STRING = re.compile(rb'"(?:[^"\\]|\\.?)*+"?', re.DOTALL)
"""It matches from any quotation mark on, so that looking for it takes no longer where its end is missing."""


class Unreadable(MqlabError):
    """It is no such file, or no such text; the text says why."""


def open_file(path: Path, most: int) -> int:
    """A descriptor of a file that has at most so many bytes; neither a link nor a pipe nor a device is opened."""
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise Unreadable(f"it can't be opened: {getattr(error, 'strerror', None) or error}") from None
    status = os.fstat(opened)
    if stat.S_ISREG(status.st_mode) and status.st_size <= most:
        return opened
    os.close(opened)
    raise Unreadable(f"it has more than {most:,} bytes" if stat.S_ISREG(status.st_mode) else "it is no file")


def read_file(path: Path, most: int) -> bytes:
    """What is in a file of at most so many bytes, as it is now."""
    with os.fdopen(open_file(path, most), "rb") as file:
        try:
            content = file.read(most + 1)
        except OSError as error:
            raise Unreadable(f"it can't be read: {error.strerror}") from None
    if len(content) > most:
        raise Unreadable(f"it has more than {most:,} bytes")
    return content


def read_json(content: bytes, most_values: int = MOST_VALUES) -> Any:
    """What the JSON says; its values are counted before any of them is made."""
    if has_more_values(content, most_values):
        raise Unreadable(f"it has more than {most_values:,} values")
    try:
        return json.loads(content)
    except (ValueError, RecursionError, MemoryError):
        raise Unreadable("it is no JSON") from None


def has_more_values(content: bytes, most_values: int) -> bool:
    """Whether a JSON text has more values than so many, without making any of them."""
    return _marks(content) > most_values and _marks(_STRING.sub(b"", content)) > most_values


def _marks(content: bytes) -> int:
    return sum(content.count(mark) for mark in (b",", b"[", b"{"))


def remove_tree(directory: Path) -> None:
    """Remove a directory, however deep it is: what lies in its directories is moved up first.

    What this user may not remove is left.
    """
    waiting, number = deque([str(directory)]), 0
    while waiting:
        place = waiting.popleft()
        with suppress(OSError):
            os.chmod(place, 0o700)
        for entry in _entries(place):
            with suppress(OSError):
                if not entry.is_dir(follow_symlinks=False):
                    os.unlink(entry.path)
                elif place == str(directory):
                    waiting.append(entry.path)
                else:
                    number += 1
                    with suppress(OSError):
                        os.chmod(entry.path, 0o700)
                    raised = os.path.join(directory, f"{number}.{os.urandom(8).hex()}")
                    os.rename(entry.path, raised)
                    waiting.append(raised)
        if place != str(directory):
            with suppress(OSError):
                os.rmdir(place)
    with suppress(OSError):
        os.rmdir(directory)


def _entries(place: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(place) as found:
            return list(found)
    except OSError:
        return []

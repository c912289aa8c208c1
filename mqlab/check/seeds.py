"""The seed of a student's own world."""

from __future__ import annotations

import os
from hashlib import blake2b

DEFAULT_SEED = 7
HUB_USER = "JUPYTERHUB_USER"
"""The environment variable in which a JupyterHub says whose notebook server it is."""


def seed_for(student_id: str, lab: str) -> int:
    """The seed that belongs to one student in one lab: the same on every machine, on every day.

    `lab` is the lab's number ("02"). Without a student id, on a JupyterHub the name of its user counts, and elsewhere
    everybody gets `DEFAULT_SEED`; spaces around the id and its case do not count. The seed is in 1 .. 2**31 - 1.
    """
    student = (student_id.strip() or os.environ.get(HUB_USER, "").strip()).lower()
    if not student:
        return DEFAULT_SEED
    digest = blake2b(f"{lab}/{student}".encode(), digest_size=8).digest()
    return 1 + int.from_bytes(digest, "big") % (2**31 - 1)

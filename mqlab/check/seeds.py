"""The seed of a student's own world."""

from __future__ import annotations

import os
from hashlib import blake2b

from mqlab.errors import LearnerError

DEFAULT_SEED = 7
HUB_USER = "JUPYTERHUB_USER"
"""The environment variable in which a JupyterHub says whose notebook server it is."""


def seed_for(student_id: str, lab: str, exam: str = "") -> int:
    """The seed that belongs to one student in one lab: the same on every machine, on every day.

    `lab` is the lab's number ("02"). Without a student id, on a JupyterHub the name of its user counts, and elsewhere
    everybody gets `DEFAULT_SEED`; spaces around the id and its case do not count. An exam has a code of its own, with
    which everybody's seed is another one. The seed is in 1 .. 2**31 - 1.
    """
    student = whose(student_id)
    if not student and not exam:
        return DEFAULT_SEED
    digest = blake2b("/".join([lab, student, *filter(None, [exam])]).encode(), digest_size=8).digest()
    return 1 + int.from_bytes(digest, "big") % (2**31 - 1)


def whose(student_id: str) -> str:
    """Whose notebook this is: the id, and on a JupyterHub without one the name of its user; "" for nobody's.

    LearnerError for an id that is no text: papermill makes numbers of ids that look like them, and 007 is no 7.
    """
    if not isinstance(student_id, str):
        raise LearnerError(
            f"an id is a text, and yours is {student_id!r}",
            f'write student_id = "{student_id}"; for papermill: -r student_id {student_id}, in place of -p',
        )
    return (student_id.strip() or os.environ.get(HUB_USER, "").strip()).lower()

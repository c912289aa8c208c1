"""Marking: a student's solution is played by a judge that it can't reach.

The student's code leaves the notebook as text. It runs in a process of its own (`solution_process`), which is confined;
the judge runs in another one, with the hidden seeds, and calls the student's functions over a pipe (`peer`). Only
plain data and references cross it: nothing is unpickled, and what comes back is a value or is refused.
"""

"""Worlds of exercises: somebody's own code decides in them, and a check says what came of it.

Nothing in here knows a right answer: a solution that is marked may import all of it, and hold what is marked as handed
over.
"""

"""Where notebooks look for lab 19's day: it is mqlab.exercises.bad_day."""

from mqlab.exercises.bad_day import BadDay, Failed, RetryRule, Try, naive_rule

__all__ = ["BadDay", "Failed", "RetryRule", "Try", "naive_rule"]

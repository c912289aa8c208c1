"""Traces of mqlab as Spark data: readers, jobs and streams."""

"""Benchmarks: what mqlab costs, each figure beside a peer or a limit that was measured in the same run."""

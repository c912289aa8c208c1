"""A cluster of this machine is not even begun where it cannot be; tests/cluster has those that run."""

from __future__ import annotations

import pytest

from mqlab.errors import LearnerError
from mqlab_spark import local_cluster
from mqlab_spark.local_cluster import LocalCluster


def test_a_cluster_without_workers_or_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LearnerError, match="0 workers cannot be"):
        LocalCluster(workers=0)
    monkeypatch.setattr(local_cluster, "MEMORY_NEEDED_MIB", 1 << 40)
    with pytest.raises(LearnerError, match=r"MiB of memory, and [\d,]+ MiB are free"), LocalCluster():
        pass

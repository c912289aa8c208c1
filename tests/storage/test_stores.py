"""What must hold in every store, on a real HDFS and on S3; and how a store that is not there is said."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count

import pytest

from mqlab.errors import LearnerError
from mqlab_spark.local_cluster import SPARK_HOME, free_port
from mqlab_spark.storage import ChangedError, folder
from tests.storage.servers import jars
from tests.stores import StoreTests

LARGE = 100 << 20
"""The bytes from which on s3fs makes several requests of a file; a catalogue of 300,000 traces has so many."""

_numbers = count()


class TestHdfs(StoreTests):
    @pytest.fixture
    def address(self, hdfs: str) -> str:
        return f"{hdfs}/test/{next(_numbers)}"


class TestS3(StoreTests):
    @pytest.fixture
    def address(self, s3: Mapping[str, str]) -> str:
        return f"s3a://lake/test/{next(_numbers)}"


def test_the_marks_that_hadoop_makes_for_directories_are_no_files(s3: Mapping[str, str]) -> None:
    from s3fs import S3FileSystem

    for name in ("marked/", "marked/in/"):
        S3FileSystem().call_s3("put_object", Bucket="lake", Key=name, Body=b"")
    folder("s3://lake/marked").swap("in/a", b"1")
    assert [file.path for file in folder("s3://lake/marked").files()] == ["in/a"]


def test_s3_has_two_names_and_spark_is_told_the_one_that_hadoop_knows(s3: Mapping[str, str]) -> None:
    assert folder("s3://lake/a/").spark("b") == folder("s3a://lake/a").spark("b") == "s3a://lake/a/b"


def test_a_large_file_is_replaced_on_s3_in_one_step_too(s3: Mapping[str, str]) -> None:
    there = folder("s3a://lake/large")
    first = there.swap("catalogue", b"1" * LARGE, None)
    with pytest.raises(ChangedError):
        there.swap("catalogue", b"x" * LARGE, None)
    second = there.swap("catalogue", b"2" * LARGE, first)
    with pytest.raises(ChangedError):
        there.swap("catalogue", b"x" * LARGE, first)
    seen = there.look("catalogue")
    assert seen is not None
    assert (seen.state, len(seen.data), set(seen.data)) == (second, LARGE, {ord("2")})


def test_a_store_that_is_not_there_is_said_plainly(
    hdfs: str, s3: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody = f"127.0.0.1:{free_port()}"
    with pytest.raises(LearnerError, match=rf"hdfs://{nobody}/a cannot be reached: .*refused"):
        folder(f"hdfs://{nobody}/a")
    with pytest.raises(LearnerError, match=r"s3a://nobucket/a cannot be reached: .*(bucket|Not Found)"):
        folder("s3://nobucket/a")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    from s3fs import S3FileSystem

    S3FileSystem.clear_instance_cache()
    with pytest.raises(LearnerError, match="there are no credentials for s3a://lake/a"):
        folder("s3://lake/a")
    S3FileSystem.clear_instance_cache()


def test_the_jars_are_of_the_hadoop_that_pyspark_brings() -> None:
    brought = {jar.name for jar in (SPARK_HOME / "jars").glob("hadoop-client-api-*.jar")}
    assert brought == {jar.name for jar in jars("hadoop-client-api")}

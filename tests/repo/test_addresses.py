"""Nothing in the repository names a package registry, or a place on somebody's machine."""

from __future__ import annotations

import re

from .tree import ROOT, committed_files

# Each is put together from parts, so that this file passes its own check.
REGISTRIES = re.compile(
    "|".join(
        [
            r"pypi\.(org|python\.org)/" + "(simple|packages)",
            "files.python" + r"hosted\.org",
            "--(extra-)?index" + "-url",
            "index-url" + r"\s*=",
            "--find" + "-links",
            "registry" + r"\.npmjs\.org",
            "registry" + r"\.yarnpkg\.com",
            r"repo1?\.maven" + r"\.(apache\.)?org",
            "(deb|security)" + r"\.debian\.org",
            "archive" + r"\.ubuntu\.com",
            "conda" + r"\.anaconda\.org",
            "arti" + "factory",
            "crates" + r"\.io/api",
            r"proxy\.golang" + r"\.org",
        ]
    ).encode()
)
PLACES = re.compile(rb"(?<![\w.~/}-])/(root\b|work\b|home/\w|Users/\w|tmp/\w)[\w./-]*")


def found(pattern: re.Pattern[bytes]) -> list[str]:
    """Where the pattern stands, as `file:line: text`."""
    places = []
    for path in committed_files():
        content = path.read_bytes()
        for match in pattern.finditer(content):
            line = content.count(b"\n", 0, match.start()) + 1
            places.append(f"{path.relative_to(ROOT)}:{line}: {match[0].decode(errors='replace')}")
    return places


def test_no_file_names_a_package_registry() -> None:
    assert found(REGISTRIES) == []


def test_no_file_names_a_place_on_a_machine() -> None:
    assert found(PLACES) == []

"""The environments of these tests, each made once."""

from __future__ import annotations

import pytest

from .prefix import COMPILED, PURE, SOURCE, Prefix, made


@pytest.fixture(scope="package")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Prefix:
    """The pure wheel with `[all]`."""
    return Prefix(tmp_path_factory.mktemp("all"), made(PURE), "[all]")


@pytest.fixture(scope="package")
def from_source(tmp_path_factory: pytest.TempPathFactory) -> Prefix:
    """The source distribution alone: no extra, so no other package."""
    return Prefix(tmp_path_factory.mktemp("source"), made(SOURCE))


@pytest.fixture(scope="package")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Prefix:
    """The compiled wheel with the labs."""
    return Prefix(tmp_path_factory.mktemp("compiled"), made(COMPILED), "[labs]")

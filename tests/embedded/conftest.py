from pathlib import Path

import pytest

from tests.embedded.running import copy_of, servers


@pytest.fixture(scope="session")
def fresh_var(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `var` of a first run, made once because that takes seconds; tests use copies of it."""
    made = tmp_path_factory.mktemp("embedded") / "var"
    with servers(made):
        pass
    return made


@pytest.fixture
def var(fresh_var: Path, tmp_path: Path) -> Path:
    return copy_of(fresh_var, tmp_path / "var")

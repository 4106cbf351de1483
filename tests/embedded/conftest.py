from pathlib import Path

import pytest

from tests.embedded.running import copy_of, servers


@pytest.fixture(scope="session")
def fresh_var(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made once by a first run, since that takes a second or two; tests work on copies."""
    made = tmp_path_factory.mktemp("embedded") / "var"
    with servers(made):
        pass
    return made


@pytest.fixture
def var(fresh_var: Path, tmp_path: Path) -> Path:
    return copy_of(fresh_var, tmp_path / "var")

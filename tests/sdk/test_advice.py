"""The client libraries contain the advice of the documentation."""

from pathlib import Path

import pytest

from sdk.write_advice import advice_files

FILES = advice_files()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_library_has_the_advice_of_the_documentation(file: Path) -> None:
    """`make sdk` writes it."""
    assert file.read_text() == FILES[file]

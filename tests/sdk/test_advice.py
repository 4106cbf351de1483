"""The client library contains the advice of the documentation."""

from sdk.write_advice import FILE, advice


def test_the_advice_of_the_library_is_that_of_the_documentation() -> None:
    """`make sdk` writes it."""
    assert FILE.read_text() == advice()

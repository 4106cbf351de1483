import pytest
from django.test import Client

from tests.operators.back_office import signed_in


@pytest.fixture
def browser(db: None) -> Client:
    """A browser in which a superuser has signed in."""
    return signed_in()

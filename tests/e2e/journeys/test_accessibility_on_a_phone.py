"""The tests of the merchant site's pages on a phone, in dark colours and in German."""

from typing import Any

import pytest

from tests.merchants.pages.test_accessibility import *  # noqa: F403
from tests.merchants.pages.test_accessibility import LOOKS


@pytest.fixture(name="look")
def on_a_phone() -> Any:
    return LOOKS["phone in the dark"]

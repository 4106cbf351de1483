from collections.abc import Iterator

import pytest

from labs.installation.postgres import DurablePostgres
from labs.interleavings.kills.killing import Zygote, running_zygote


@pytest.fixture(scope="module")
def zygote(durable: DurablePostgres) -> Iterator[Zygote]:
    """Starts processes of the service on the durable database."""
    with running_zygote(durable) as zygote:
        yield zygote

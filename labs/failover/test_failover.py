"""When the leader of the database dies or is cut off, no purchase is lost and sales resume.

The cluster is the one of docs/operate/failover.md, with its own files. FAILOVERS=3 repeats every
drill three times, and asserts that sales stand still for less than 10 seconds: it runs alone.
"""

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from labs.failover.drills import DRILLS, QUICK_DRILLS, Drill, running_service
from labs.installation.cluster import Cluster, running_cluster
from tests.live import LiveServer

pytestmark = pytest.mark.patroni

TIMES = int(os.environ.get("FAILOVERS", "0"))
EACH = DRILLS * TIMES or QUICK_DRILLS
# Seconds without a sale. The hosts share two processors with the rest of the suite.
LONGEST_PAUSE = 10.0 if TIMES else 20.0


@pytest.fixture(scope="module")
def cluster(django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("failover")
    with django_db_blocker.unblock(), running_cluster(folder) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def server(cluster: Cluster) -> Iterator[LiveServer]:
    with running_service(cluster) as server:
        yield server


@pytest.mark.parametrize("drill", EACH, ids=[each.__name__ for each in EACH])
def test_no_purchase_is_lost(
    drill: Callable[[Cluster, LiveServer], Drill], cluster: Cluster, server: LiveServer
) -> None:
    found = drill(cluster, server)
    assert found.pause < LONGEST_PAUSE

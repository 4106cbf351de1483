"""kill -9 of the process, or of PostgreSQL, at a sample of the database calls of each operation.

`make interleavings` kills at every call.
"""

import os
from collections.abc import Iterator

import pytest

from labs.installation.postgres import DurablePostgres
from labs.interleavings.kills.killing import Operation, Victim, Zygote, kill_everywhere
from labs.interleavings.kills.operations import NAMES, operations
from labs.interleavings.kills.proxy import When
from operators.upkeep.reconcile import reconcile
from tests.concurrency.racing import weakened_sql

# One of so many calls.
WHOLE = "INTERLEAVINGS" in os.environ
SAMPLED = dict.fromkeys(Victim, 1) if WHOLE else {Victim.PROCESS: 8, Victim.SERVER: 14}


@pytest.fixture(scope="module")
def killed(durable: DurablePostgres) -> Iterator[dict[str, Operation]]:
    with operations() as found:
        yield found


@pytest.mark.parametrize("name", NAMES)
def test_a_kill_at_some_calls(zygote: Zygote, killed: dict[str, Operation], name: str) -> None:
    def chosen(victim: Victim, when: When, call: int) -> bool:
        spread = sum(map(ord, name + when))  # other calls for each operation
        return (call + spread) % SAMPLED[victim] == 0

    counted = kill_everywhere(zygote, killed[name], chosen=chosen)
    print(f"{name}: {counted.calls} calls, {counted.kills}")  # noqa: T201  what the run counted

    assert not counted.failures, counted.failures
    assert all(counted.kills[victim] for victim in Victim)
    assert reconcile(decrypt=True)["findings"] == []


def test_control_a_reference_that_is_written_after_the_purchase(
    zygote: Zygote, killed: dict[str, Operation]
) -> None:
    """The record gets its reference with the stored response, in another transaction than the
    purchase. Only a kill between the two shows it: the retry buys again."""
    in_purchase = (
        "order_reference = p_reference, bought_at = clock_timestamp()",
        "attempt = attempt",
    )
    with_response = (
        "SET response = p_response",
        "SET response = p_response, bought_at = clock_timestamp(), order_reference ="
        " (SELECT reference FROM orders_order ORDER BY id DESC LIMIT 1)",
    )
    with (
        weakened_sql("idempotency/sql/stamp.sql", in_purchase),
        weakened_sql("idempotency/sql/store_response.sql", with_response),
    ):
        counted = kill_everywhere(
            zygote,
            killed["voucher"],
            chosen=lambda victim, when, call: (victim, when) == (Victim.PROCESS, When.AFTER),
        )

    assert any("2 orders" in failure for failure in counted.failures), counted
    assert not any("nobody killed" in failure for failure in counted.failures), counted

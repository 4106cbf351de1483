"""Runs the docs' programs that wait for top-ups, over a network that loses answers."""

import re
import subprocess

import pytest

from embedded.processes import free_port
from tests.factories import (
    buy_topup,
    make_merchant,
    make_operator,
    make_product,
    make_topup_product,
    move_now,
)
from tests.live import LiveServer
from tests.merchants.bad_network import FOREIGN, BadNetwork, bad_network
from tests.merchants.docs.programs import wait_until, waiting_for
from topups.fulfilment.refunds import sweep_refunds
from topups.fulfilment.transitions import Move

pytestmark = pytest.mark.django_db(transaction=True)

PROGRAM = "wait"


def assert_still_waits(program: "subprocess.Popen[str]", network: BadNetwork) -> None:
    """The program goes on after a whole round, which has at most three requests here."""
    begins = len(network.times)
    wait_until(lambda: len(network.times) >= begins + 5 or program.poll() is not None)
    assert program.poll() is None


def move(reference: str, *moves: Move) -> None:
    operator = make_operator()
    for each in (Move.CLAIM, *moves):
        move_now(reference=reference, move=each, operator=operator)


def test_a_waiting_program_says_how_each_top_up_ended(live: LiveServer, program: list[str]) -> None:
    """One is older than the 100 newest orders, and one is a voucher."""
    merchant = make_merchant(balance="1000.00", rate_limit_per_minute=1000)
    topup_product = make_topup_product(price="1.00")
    old = buy_topup(merchant, topup_product)
    voucher = merchant.buy("v", product_id=make_product(codes=1).pk, quantity=1).json()["data"]
    for _ in range(97):
        buy_topup(merchant, topup_product)
    delivered, refunded = (buy_topup(merchant, topup_product) for _ in range(2))
    references = [old, voucher["reference"], delivered, refunded]

    with (
        bad_network(live.port) as network,
        waiting_for(
            program, *references, live=live, merchant=merchant, VOUCHER_BASE_URL=network.base_url
        ) as running,
    ):
        assert_still_waits(running, network)
        move(delivered, Move.COMPLETE)
        move(old, Move.COMPLETE)
        move(refunded, Move.REJECT)
        assert_still_waits(running, network)
        assert sweep_refunds() == 1
        out, _ = running.communicate(timeout=30)

    assert running.returncode == 0
    assert sorted(out.splitlines()) == sorted(
        [
            f"{old} completed",
            f"{voucher['reference']} completed",
            f"{delivered} completed",
            f"{refunded} refunded",
        ]
    )
    read_one_by_one = {path.rpartition("/")[2] for _, path, _ in network.seen if "?" not in path}
    assert read_one_by_one - {refunded} == {old}  # the last one left is read by itself


@pytest.mark.parametrize("words", [[*FOREIGN], ["lose", "half", "limit", "move"]])
def test_a_waiting_program_waits_for_the_services_own_json(
    live: LiveServer, program: list[str], words: list[str]
) -> None:
    merchant = make_merchant(balance="100.00")
    first, second = (buy_topup(merchant, make_topup_product()) for _ in range(2))

    with (
        bad_network(live.port, *words) as network,
        waiting_for(
            program, first, second, live=live, merchant=merchant, VOUCHER_BASE_URL=network.base_url
        ) as running,
    ):
        assert_still_waits(running, network)
        for reference in (first, second):
            move(reference, Move.COMPLETE)
        out, _ = running.communicate(timeout=30)

    assert running.returncode == 0
    assert sorted(out.splitlines()) == sorted([f"{first} completed", f"{second} completed"])


def test_a_waiting_program_stops_at_an_unknown_reference(
    live: LiveServer, program: list[str]
) -> None:
    with waiting_for(program, "unknown", live=live, merchant=make_merchant()) as running:
        out, err = running.communicate(timeout=30)

    assert (running.returncode, out) == (1, "")
    assert err.splitlines()[-1] == "/orders/unknown cannot be read: order_not_found"


def test_a_waiting_program_says_that_no_refund_came(live: LiveServer, program: list[str]) -> None:
    """Staff may fail an order without a refund, after a review."""
    merchant = make_merchant(balance="100.00")
    reference = buy_topup(merchant, make_topup_product())
    move(reference, Move.REJECT)

    with waiting_for(
        program, reference, live=live, merchant=merchant, VOUCHER_PATIENCE_SECONDS="1.5"
    ) as running:
        out, _ = running.communicate(timeout=30)

    assert (running.returncode, out) == (1, f"{reference} not refunded\n")


def test_a_waiting_program_repeats_a_request_when_the_rate_limit_allows_it(
    live: LiveServer, program: list[str]
) -> None:
    """The next round could reach the limit at the same order again."""
    merchant = make_merchant(balance="100.00")
    references = [buy_topup(merchant, make_topup_product()) for _ in range(2)]
    for reference in references:
        move(reference, Move.COMPLETE)

    with (
        bad_network(live.port, "none", "limit") as network,
        waiting_for(
            program, *references, live=live, merchant=merchant, VOUCHER_BASE_URL=network.base_url
        ) as running,
    ):
        out, _ = running.communicate(timeout=30)

    assert out.splitlines() == [f"{reference} completed" for reference in references]
    assert [path.rpartition("/")[2] for _, path, _ in network.seen] == references
    assert network.times[2] - network.times[1] >= 1  # retry_after_seconds


def test_a_waiting_program_reads_the_other_old_orders_if_one_cannot_be_read(
    live: LiveServer, program: list[str]
) -> None:
    merchant = make_merchant(balance="100.00")
    unreadable, readable = (buy_topup(merchant, make_topup_product()) for _ in range(2))
    for reference in (unreadable, readable):
        move(reference, Move.COMPLETE)

    with (
        bad_network(live.port, "none", "gateway") as network,
        waiting_for(
            program,
            unreadable,
            readable,
            live=live,
            merchant=merchant,
            VOUCHER_BASE_URL=network.base_url,
        ) as running,
    ):
        out, _ = running.communicate(timeout=30)

    assert out.splitlines() == [f"{readable} completed", f"{unreadable} completed"]
    assert network.times[2] - network.times[1] >= 1  # one a second


@pytest.mark.parametrize("wrong", ["{network}", "http://127.0.0.1:{closed}", "https://{host}"])
def test_a_waiting_program_gives_up_if_it_can_read_no_order(
    live: LiveServer, program: list[str], wrong: str
) -> None:
    """A proxy answers for ever, nothing listens there, or there is no certificate."""
    host = live.base_url.removeprefix("http://")

    with (
        bad_network(live.port, *["crowd"] * 1000) as network,
        waiting_for(
            program,
            "R-1",
            "R-2",
            live=live,
            merchant=make_merchant(),
            VOUCHER_BASE_URL=wrong.format(network=network.base_url, closed=free_port(), host=host),
            VOUCHER_PATIENCE_SECONDS="1.5",
        ) as running,
    ):
        out, err = running.communicate(timeout=30)

    assert (running.returncode, out) == (1, ""), err
    *before, last = err.splitlines()
    assert len(before) > 1
    assert all("trying again" in line for line in before)
    assert last == "Gave up, because no order could be read: check VOUCHER_BASE_URL"


def test_a_waiting_program_goes_on_while_it_can_read_an_order_now_and_then(
    live: LiveServer, program: list[str]
) -> None:
    merchant = make_merchant(balance="100.00", rate_limit_per_minute=1000)
    reference = buy_topup(merchant, make_topup_product())

    with (
        bad_network(live.port, *["gateway", "pass"] * 1000) as network,
        waiting_for(
            program,
            reference,
            live=live,
            merchant=merchant,
            VOUCHER_BASE_URL=network.base_url,
            VOUCHER_PATIENCE_SECONDS="1.5",
        ) as running,
    ):
        wait_until(lambda: len(network.seen) > 4)
        with pytest.raises(subprocess.TimeoutExpired):
            running.wait(2)  # longer than its patience


def test_a_waiting_program_takes_an_empty_variable_as_the_default(
    live: LiveServer, program: list[str]
) -> None:
    merchant = make_merchant(balance="100.00")
    reference = buy_topup(merchant, make_topup_product())
    move(reference, Move.REJECT)

    with (
        bad_network(live.port) as network,
        waiting_for(
            program,
            reference,
            live=live,
            merchant=merchant,
            VOUCHER_BASE_URL=network.base_url,
            VOUCHER_PAUSE_SECONDS="",
            VOUCHER_PATIENCE_SECONDS="",
        ) as running,
    ):
        wait_until(lambda: len(network.seen) == 1)
        with pytest.raises(subprocess.TimeoutExpired):
            running.wait(1)

    assert len(network.seen) == 1


def test_a_waiting_program_that_was_started_wrongly_sends_nothing(
    live: LiveServer, program: list[str]
) -> None:
    merchant = make_merchant()
    usage = r"Usage: .+ REFERENCE\.\.\.\n"
    wrong: list[tuple[list[str], dict[str, str], str]] = [
        ([], {}, usage),
        ([""], {}, usage),
        (["R-1", "../ping"], {}, usage),
        (["R-1"], {"VOUCHER_BASE_URL": ""}, "Set VOUCHER_BASE_URL\n"),
        (["R-1"], {"VOUCHER_API_KEY": "vk_secret\n"}, "Set VOUCHER_API_KEY to the key only.*\n"),
    ]
    for name, values in {
        "VOUCHER_PAUSE_SECONDS": ["0", "-1", "nan", "1\n", "9999999"],
        "VOUCHER_PATIENCE_SECONDS": ["0.0", "1 min"],
    }.items():
        problem = f"Set {name} to a number of seconds\n"
        wrong += [(["R-1"], {name: value}, problem) for value in values]

    with bad_network(live.port) as network:
        for references, changes, problem in wrong:
            variables = {"VOUCHER_BASE_URL": network.base_url, **changes}
            with waiting_for(
                program, *references, live=live, merchant=merchant, **variables
            ) as running:
                out, err = running.communicate(timeout=30)
            assert (running.returncode, out) == (64, "")
            assert re.fullmatch(problem, err), err

    assert network.seen == []

"""The collections for Postman and Bruno are made from the document, and run against the service."""

import subprocess
from pathlib import Path

import pytest

from sdk.write_collections import BRUNO, POSTMAN, VARIABLES, collection_files
from tests.factories import link, make_merchant, make_product, make_topup_product, own_shelf
from tests.live import LiveServer
from tests.merchants.bad_network import bad_network
from tests.neighbour import ours
from tests.sdk import npm
from wallets.models import EntryKind, LedgerEntry

FILES = collection_files()
TOOLS = Path(__file__).parent / "collections"  # its package.json lists newman and Bruno's program


def test_the_collections_are_those_of_the_document() -> None:
    """`make sdk` writes them."""
    assert {file: file.read_text() for file in FILES} == FILES
    assert {*BRUNO.glob("*.bru")} == {file for file in FILES if file.suffix == ".bru"} - {
        BRUNO / "environments" / "Service.bru"
    }


def test_a_collection_contains_no_key() -> None:
    assert VARIABLES["api_key"] == ""


def send_all(tool: str, base_url: str, *options: str) -> "subprocess.CompletedProcess[str]":
    """Sends the requests in their order, as Postman and Bruno do, and checks their assertions."""
    merchant = make_merchant()
    product, topup_product = make_product(codes=9), make_topup_product()
    link(merchant.account, VARIABLES["merchant_reference"], own_shelf(product))
    variables = {
        "base_url": base_url,
        "api_key": merchant.key,
        "product": str(product.pk),
        "topup_product": str(topup_product.pk),
    }
    # Bruno's other sandbox loads while it sends the first requests, and breaks what it judges then.
    bruno = ["run", "--env", "Service", "--sandbox=developer"]
    command = {"newman": ["run", str(POSTMAN)], "bru": bruno}[tool]
    for name, value in variables.items():
        command += ["--env-var", f"{name}={value}"]
    return subprocess.run(
        [npm.install(TOOLS) / ".bin" / tool, *command, *options],
        cwd=BRUNO,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def number_of_debits() -> int:
    return ours(LedgerEntry).filter(kind=EntryKind.PURCHASE).count()


@pytest.mark.npm
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("tool", ["newman", "bru"])
def test_each_request_of_the_collection_succeeds(live: LiveServer, tool: str) -> None:
    done = send_all(tool, f"{live.base_url}/api/v1")

    assert done.returncode == 0, done.stdout + done.stderr
    assert number_of_debits() == 3


@pytest.mark.npm
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("tool", ["newman", "bru"])
def test_a_purchase_without_a_response_is_sent_again_with_its_key(
    live: LiveServer, tool: str
) -> None:
    reads = ["pass"] * 7
    with bad_network(live.port, *reads, "lose") as network:
        done = send_all(tool, network.base_url, "--iteration-count=2")

    assert done.returncode != 0, done.stdout
    posts = [status for method, _, status in network.seen if method == "POST"]
    assert posts == [201] * 6, done.stdout
    assert number_of_debits() == 5

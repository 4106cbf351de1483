"""The collections for Postman and Bruno are made from the document, and run against the service."""

import subprocess
from pathlib import Path

import pytest

from sdk.write_collections import BRUNO, POSTMAN, VARIABLES, collection_files
from tests.factories import link, make_merchant, make_product, make_topup_product, own_shelf
from tests.live import LiveServer
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


@pytest.mark.npm
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("tool", ["newman", "bru"])
def test_each_request_of_the_collection_succeeds(live: LiveServer, tool: str) -> None:
    """Sends the requests in their order, as Postman and Bruno do, and checks their assertions."""
    merchant = make_merchant()
    product, topup_product = make_product(codes=9), make_topup_product()
    link(merchant.account, VARIABLES["merchant_reference"], own_shelf(product))
    variables = {
        "base_url": f"{live.base_url}/api/v1",
        "api_key": merchant.key,
        "product": str(product.pk),
        "topup_product": str(topup_product.pk),
    }
    command = {"newman": ["run", str(POSTMAN)], "bru": ["run", "--env", "Service"]}[tool]
    for name, value in variables.items():
        command += ["--env-var", f"{name}={value}"]

    done = subprocess.run(
        [npm.install(TOOLS) / ".bin" / tool, *command],
        cwd=BRUNO,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert ours(LedgerEntry).filter(kind=EntryKind.PURCHASE).count() == 3

"""The collections for Postman and Bruno are made from the document, and run against the service."""

import json
import re
from typing import Any
from uuid import uuid4

import pytest

from sdk.write_collections import BRUNO, POSTMAN, VARIABLES, collection_files
from tests.factories import link, make_merchant, make_product, make_topup_product, own_shelf
from tests.live import LiveServer
from tests.neighbour import ours
from wallets.models import EntryKind, LedgerEntry

FILES = collection_files()


def test_the_collections_are_those_of_the_document() -> None:
    """`make sdk` writes them."""
    assert {file: file.read_text() for file in FILES} == FILES
    assert {*BRUNO.glob("*.bru")} == {file for file in FILES if file.suffix == ".bru"} - {
        BRUNO / "environments" / "Service.bru"
    }


def test_a_collection_contains_no_key() -> None:
    assert VARIABLES["api_key"] == ""


@pytest.mark.django_db(transaction=True)
def test_each_request_of_the_collection_succeeds(live: LiveServer) -> None:
    """Sends the requests of the Postman file in their order, as Postman does."""
    merchant = make_merchant()
    product, topup_product = make_product(codes=9), make_topup_product()
    link(merchant.account, VARIABLES["merchant_reference"], own_shelf(product))
    collection = json.loads(POSTMAN.read_text())
    variables: dict[str, str] = {each["key"]: each["value"] for each in collection["variable"]}
    variables |= {
        "base_url": "/api/v1",
        "api_key": merchant.key,
        "product": str(product.pk),
        "topup_product": str(topup_product.pk),
    }

    def filled(text: str) -> str:
        """The text with the values of its variables."""
        values = {**variables, "$guid": str(uuid4())}
        return re.sub(r"\{\{(.*?)\}\}", lambda found: values[found[1]], text)

    def send(item: dict[str, Any]) -> Any:
        request = item["request"]
        headers = {each["key"]: filled(each["value"]) for each in request["header"]}
        headers["Authorization"] = f"Bearer {filled(collection['auth']['bearer'][0]['value'])}"
        body = filled(request["body"]["raw"]).encode() if "body" in request else None
        return live.http.request(request["method"], filled(request["url"]["raw"]), body, headers)

    for item in collection["item"]:
        answer = send(item)
        script = "\n".join(item["event"][0]["script"]["exec"])
        expected = re.search(r"have\.status\((\d+)\)", script)
        assert expected, item["name"]
        assert answer.status_code == int(expected[1]), item["name"]
        if saved := re.search(r'variables?\.set\("(\w+)"', script, re.IGNORECASE):
            variables[saved[1]] = answer.json()["data"]["reference"]

    assert ours(LedgerEntry).filter(kind=EntryKind.PURCHASE).count() == 3

"""A Python client generated from the document buys a code over real HTTP."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.contract.situations import make_shop, money
from tests.live import LiveServer

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def generated(live: LiveServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The package name of a client that is generated from the downloaded document."""
    document = tmp_path / "openapi.json"
    document.write_bytes(live.http.get("/api/v1/openapi.json").content)
    tools = Path(sys.executable).parent
    made = subprocess.run(
        [
            tools / "openapi-python-client",
            "generate",
            f"--path={document}",
            f"--output-path={tmp_path / 'client'}",
            "--meta=none",
            "--fail-on-warning",
        ],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stdout
    monkeypatch.syspath_prepend(tmp_path)
    return "client"


def test_a_generated_client_buys_and_replays(live: LiveServer, generated: str) -> None:
    shop = make_shop(price="9.99", codes=3)
    package = importlib.import_module(generated)
    create_order = importlib.import_module(f"{generated}.api.orders.create_order")
    get_order = importlib.import_module(f"{generated}.api.orders.get_order")
    models = importlib.import_module(f"{generated}.models")
    with package.AuthenticatedClient(
        base_url=f"{live.base_url}/api/v1", token=shop.merchant.key
    ) as client:
        body = models.VoucherPurchaseByProductRequest(quantity=2, product_id=shop.product.pk)
        answers = [
            create_order.sync_detailed(client=client, body=body, idempotency_key="one")
            for _ in range(2)
        ]
        bought = answers[0].parsed.data
        read = get_order.sync(bought.reference, client=client).data

        assert [answer.status_code for answer in answers] == [201, 201]
        assert answers[1].headers["Idempotent-Replay"] == "true"
        assert isinstance(bought, models.VoucherOrder)
        assert read == bought
        assert len(bought.codes) == 2
        assert money().orders == 1

        refused = create_order.sync(
            client=client,
            body=models.VoucherPurchaseByProductRequest(quantity=50, product_id=shop.product.pk),
            idempotency_key="two",
        )
        assert refused.error.code == "order_refused"
        assert refused.error.reason == "insufficient_stock"

"""While PostgreSQL is down, a read is a `server_error` in the usual envelope.

The contract lists 500 for purchases only, but has no other code for a failure of the service
(docs/contract-decisions.md).
"""

import pytest
from django.test import Client

from tests.contract.rows import ENDPOINTS, TOP_UP_ENDPOINTS
from tests.database import django_uses
from tests.factories import make_merchant

pytestmark = pytest.mark.django_db(transaction=True)

READS = [name for name in ENDPOINTS | TOP_UP_ENDPOINTS if name.startswith("GET")]
NOWHERE = "postgresql://voucher:secret@127.0.0.1:1/voucher"  # nothing listens on port 1


def test_a_read_is_a_server_error() -> None:
    """Plain Django clients: the checked one compares with the document, which has no such 500."""
    headers = {"Authorization": f"Bearer {make_merchant().key}"}
    http = Client(raise_request_exception=False)
    with django_uses(NOWHERE):
        answers = {
            name: http.get(f"/api/v1{name[4:].format(product=1, reference='one')}", headers=headers)
            for name in READS
        }

    for name, answer in answers.items():
        body = answer.json()
        assert (answer.status_code, body["success"]) == (500, False), name
        assert (body["error"].keys(), body["error"]["code"]) == (
            {"code", "message"},
            "server_error",
        )
        assert "secret" not in answer.content.decode()

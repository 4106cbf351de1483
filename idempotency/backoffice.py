"""What `idempotency` declares for the back office (config/backoffice.py)."""

from config.backoffice import BackOffice, MenuEntry, Sealed, Section
from config.database.sealing import Context
from idempotency.models import IdempotencyRecord
from idempotency.services import open_response, response_row

BACK_OFFICE = BackOffice(
    counted={"idempotency_records": "idempotency_idempotencyrecord"},
    sealed=[
        Sealed(
            kind="replays",
            table="idempotency_idempotencyrecord",
            column="response",
            context=Context.REPLAY_BODY,
            identity=["client_id", "key"],
            row=response_row,
            check="every stored replay opens",
            read=open_response,
        )
    ],
    menu=[MenuEntry(Section.SYSTEM, "Idempotency records", IdempotencyRecord, "repeat_one")],
)

"""What `idempotency` declares for the back office (config/backoffice.py)."""

from functools import partial

from config.backoffice import BackOffice, MenuEntry, Sealed, Section
from config.database.sealing import Context, open_sealed
from idempotency.models import IdempotencyRecord

BACK_OFFICE = BackOffice(
    counted={"idempotency_records": "idempotency_idempotencyrecord"},
    sealed=[
        Sealed(
            kind="replays",
            table="idempotency_idempotencyrecord",
            column="response",
            context=Context.REPLAY_BODY,
            check="every stored replay opens",
            read=partial(open_sealed, context=Context.REPLAY_BODY),
        )
    ],
    menu=[MenuEntry(Section.SYSTEM, "Idempotency records", IdempotencyRecord, "repeat_one")],
)

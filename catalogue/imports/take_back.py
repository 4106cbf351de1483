"""Taking an import of codes back: its codes are deleted, or held if some of them are sold."""

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from audit.models import AuditAction
from audit.services import record_on_rows
from catalogue.models import Batch, CodeHold, CodeTrace, VoucherCode
from catalogue.stock.batches import STATES
from catalogue.stock.holds import hold_codes
from catalogue.stock.traces import lock_tracing
from core.database.functions import remove_statement_timeout
from core.inputs import InputProblem, find_row


def take_import_back(
    *, batch_id: int, reason: str, held_by: str, actor: User | None = None
) -> tuple[int, int]:
    """Deletes the codes of a batch if none of them is sold or void; otherwise holds those in stock.
    Returns how many it deleted and how many it holds.

    It first holds the codes, in a transaction of its own: no purchase of the shelf waits while they
    are deleted. If it breaks off, they stay held, and it can be run again. Raises InputProblem if
    the batch was taken back before.
    """
    batch = find_row(Batch.objects.all(), batch_id)
    _hold, held = hold_codes(codes=batch.its_codes, reason=reason, held_by=held_by, actor=actor)
    with transaction.atomic():
        remove_statement_timeout()
        batch = Batch.objects.select_for_update().get(pk=batch.pk)
        if batch.taken_back_at is not None:
            raise InputProblem(
                _("The import of %(batch)s was taken back before.") % {"batch": batch}
            )
        lock_tracing()
        codes = VoucherCode.objects.filter(batch.its_codes)
        holds = CodeHold.objects.filter(pk__in=codes.values("hold"))
        list(holds.order_by("pk").select_for_update())  # nobody releases codes meanwhile
        if codes.exclude(STATES["held"]).exists():
            return 0, held
        Batch.objects.filter(pk=batch.pk).update(taken_back_at=Now())
        CodeTrace.objects.filter(code__gte=batch.first_code, code__lte=batch.last_code).delete()
        codes.update(hold=None)  # a held code is never deleted
        with connection.cursor() as cursor:
            cursor.execute(
                "DELETE FROM catalogue_vouchercode WHERE shelf_id = %s AND id BETWEEN %s AND %s",
                [batch.shelf_id, batch.first_code, batch.last_code],
            )
            number = cursor.rowcount
        note = f"Codes: {number}. {reason}"
        on = (batch, batch.shelf)
        record_on_rows([(AuditAction.IMPORT_TAKEN_BACK, one, note, {}) for one in on], actor=actor)
    return number, 0

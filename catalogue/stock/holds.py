"""Codes that must not be sold: held for a reason, then released or voided.

A hold is released or voided as a whole. A part of its codes first moves to a hold of its own, which
keeps its reason, time and person.

Locks: the holds by id, then the shelves by id, then their codes. Voiding takes no shelf. A purchase
locks its shelf first, so it either sells a code before the hold, or never.

Nothing undoes a void, so it takes two people: one holds the codes, another voids them. A hold by
the service, such as that of expired codes, counts as another person. Superusers act alone.
"""

from collections.abc import Callable, Iterable, Mapping

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import Count, Q, QuerySet
from django.db.models.expressions import RawSQL
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from audit.models import AuditAction
from audit.services import record_action, record_on_rows
from catalogue.models import Batch, CodeHold, Shelf, VoucherCode
from core.backoffice.staff import names_of_staff_who_may
from core.command_line import shell_actor
from core.database.functions import remove_statement_timeout
from core.inputs import InputProblem, find_row

MAY_VOID = "catalogue.hold_codes"
NO_CODES = Q(pk__in=())
# A purchase takes the same codes next (catalogue/sql/take_codes.sql).
NEXT_CODES = """
    SELECT code.id
      FROM catalogue_shelf AS shelf
     CROSS JOIN LATERAL (
           SELECT id FROM catalogue_vouchercode
            WHERE shelf_id = shelf.id AND order_id IS NULL AND hold_id IS NULL
              AND (expires_on IS NULL OR expires_on >= (now() AT TIME ZONE 'UTC')::date)
            ORDER BY position
            LIMIT %s) AS code
"""


def next_codes(number: int) -> Q:
    """The condition for the codes that each shelf sells next, up to this number of each."""
    return Q(pk__in=RawSQL(NEXT_CODES, [number]))  # noqa: S611


def hold_codes(
    *, codes: Q, reason: str, held_by: str, actor: User | None = None, held_codes: Q = NO_CODES
) -> tuple[CodeHold | None, int]:
    """Holds the chosen codes that are in stock; `Q()` chooses all. Those of `held_codes` that
    are not void leave their holds for this one.

    Returns the hold and the number of its codes, or None and 0 if there are none. `actor` is the
    person in the back office, None for the person who runs the command.
    """
    with transaction.atomic():
        in_stock = VoucherCode.objects.filter(codes, order_id=None, hold=None)
        remove_statement_timeout()
        others = _lock_holds(VoucherCode.objects.filter(held_codes))
        _lock_shelves(in_stock)
        if not others and not in_stock.exists():
            return None, 0
        hold = CodeHold.objects.create(reason=reason, held_by=held_by)
        number = in_stock.update(hold=hold)
        _change_stock(hold, by=-1)
        for other in others:
            moved = other.codes.filter(held_codes).update(hold=hold)
            number += moved
            note = f"Moved to {hold}. {reason}"
            _record(other, AuditAction.CODES_MOVED, moved, actor=actor, note=note)
        _record_all(hold, AuditAction.CODES_HELD, number, actor=actor, note=reason)
    return hold, number


def release_hold(hold_id: int, *, actor: User | None = None, note: str = "") -> int:
    """Returns held codes to stock, at their old places; returns how many. Raises InputProblem for
    an unknown or voided hold."""
    with transaction.atomic():
        remove_statement_timeout()
        hold = _open_hold(hold_id)
        _lock_shelves(hold.codes.all())
        _change_stock(hold, by=1)
        number = hold.codes.count()
        _record_all(hold, AuditAction.CODES_RELEASED, number, actor=actor, note=note)
        hold.codes.update(hold=None)
    return number


def void_hold(hold_id: int, *, actor: User | None = None, note: str = "") -> int:
    """Voids held codes, for ever; returns how many. Raises InputProblem for an unknown or voided
    hold, and for one that the same person made."""
    with transaction.atomic():
        remove_statement_timeout()
        hold = _open_hold(hold_id)
        refuse_own([hold], actor)
        CodeHold.objects.filter(pk=hold.pk).update(voided_at=Now())
        number = hold.codes.count()
        _record_all(hold, AuditAction.CODES_VOIDED, number, actor=actor, note=note)
    return number


def refuse_own(holds: Iterable[CodeHold], actor: User | None) -> None:
    """Raises InputProblem if the person who would void these holds made one of them. `actor` is as
    in `hold_codes`."""
    if asks := other_to_ask(holds, actor):
        nothing = _("Nothing was changed.")
        raise InputProblem(f"{asks} {nothing}")


def other_to_ask(holds: Iterable[CodeHold], actor: User | None) -> str:
    """A sentence that names the people who can void these holds; empty if the actor can."""
    if actor is not None and actor.is_superuser:
        return ""
    name = actor.get_username() if actor else _person(shell_actor())
    if all(_person(hold.held_by) != name for hold in holds):
        return ""
    people = names_of_staff_who_may(MAY_VOID, name)
    problem = _("You held these codes yourself, so another person voids them.")
    ask = _("Ask one of these: %(people)s.") % {"people": people} if people else ""
    return f"{problem} {ask}".rstrip()


def _person(held_by: str) -> str:
    """The name in `admin:NAME` and `shell:NAME`; empty for a hold by the service."""
    return held_by.partition(":")[2]


# What becomes of the codes that leave a hold, for the audit trail of that hold.
ACTIONS = {release_hold: AuditAction.CODES_RELEASED, void_hold: AuditAction.CODES_VOIDED}


def end_codes(
    end: Callable[..., int],
    *,
    codes: Q,
    seen: Mapping[int, int],
    reason: str,
    actor: User | None = None,
) -> int:
    """Releases or voids the chosen codes: `end` is `release_hold` or `void_hold`. Returns how many.

    `seen` is what `count_by_hold` said when the person decided. Raises InputProblem if that has
    changed, and unless all of the codes are held.
    """
    with transaction.atomic():
        remove_statement_timeout()
        chosen = VoucherCode.objects.filter(codes)
        holds = _lock_holds(chosen)
        numbers = count_by_hold(codes)
        _refuse_others(chosen, numbers, seen)
        if end is release_hold:
            _lock_shelves(chosen)
        parts = [
            _set_apart(hold, chosen, ACTIONS[end], numbers[hold.pk], actor=actor, reason=reason)
            for hold in holds
        ]
        return sum(end(part.pk, actor=actor, note=reason) for part in parts)


def count_by_hold(codes: Q) -> dict[int, int]:
    """The number of the chosen codes in each hold that is not void."""
    held = VoucherCode.objects.filter(codes, hold__isnull=False, hold__voided_at=None)
    return dict(held.order_by("hold").values_list("hold").annotate(number=Count("pk")))


def holds_of_batch(batch_id: int) -> QuerySet[CodeHold]:
    """The holds that have codes of the batch now."""
    batch = Batch.objects.filter(pk=batch_id).first()
    if batch is None:
        return CodeHold.objects.none()
    held = VoucherCode.objects.filter(batch.its_codes, hold__isnull=False)
    return CodeHold.objects.filter(pk__in=held.values("hold"))


def _refuse_others(
    chosen: QuerySet[VoucherCode], numbers: Mapping[int, int], seen: Mapping[int, int]
) -> None:
    """Raises InputProblem unless the chosen codes are held as the person has seen it."""
    if not numbers:
        raise InputProblem(_("None of these codes is held. Nothing was changed."))
    if numbers != seen:
        raise InputProblem(
            _(
                "These codes were held, released or voided meanwhile. Nothing was changed."
                " Look again."
            )
        )
    if chosen.exclude(hold__in=numbers).exists():
        raise InputProblem(
            _("Some of these codes are not held. Nothing was changed. Choose only held codes.")
        )


def _set_apart(
    hold: CodeHold,
    chosen: QuerySet[VoucherCode],
    action: AuditAction,
    number: int,
    *,
    actor: User | None,
    reason: str,
) -> CodeHold:
    """The hold itself if all of its codes are chosen, or a new one with the chosen ones. The audit
    trail of a hold that codes leave says what becomes of them: the `action`."""
    if hold.codes.count() == number:
        return hold
    part = CodeHold.objects.create(reason=hold.reason, held_at=hold.held_at, held_by=hold.held_by)
    chosen.filter(hold=hold).update(hold=part)
    _record(hold, action, number, actor=actor, note=f"Moved to {part}. {reason}")
    return part


def _record(
    hold: CodeHold, action: AuditAction, number: int, *, actor: User | None, note: str
) -> None:
    record_action(actor=actor, action=action, on=hold, note=note_of_codes(number, note))


def _record_all(
    hold: CodeHold, action: AuditAction, number: int, *, actor: User | None, note: str
) -> None:
    """Adds an entry about the hold, and one about each shelf of its codes: released codes no longer
    belong to a hold, so the timeline of a shelf could not find it."""
    _record(hold, action, number, actor=actor, note=note)
    numbers = dict(hold.codes.order_by().values_list("shelf").annotate(number=Count("pk")))
    shelves = Shelf.objects.select_related("product", "variation__product").in_bulk(numbers)
    entries = [
        (action, shelves[pk], note_of_codes(one, note), {"hold": (None, hold.pk)})
        for pk, one in numbers.items()
    ]
    record_on_rows(entries, actor=actor)


def note_of_codes(number: int, note: str) -> str:
    """The note of an audit entry about so many codes."""
    return f"Codes: {number}. {note}".rstrip(". ")


def _open_hold(hold_id: int) -> CodeHold:
    hold = find_row(CodeHold.objects.select_for_update(), hold_id)
    if hold.voided_at is not None:
        raise InputProblem(
            _("The codes of hold %(hold)s are void. Nothing was changed.") % {"hold": hold.pk}
        )
    return hold


def _lock_holds(codes: QuerySet[VoucherCode]) -> list[CodeHold]:
    """The holds of these codes that are not void."""
    holds = CodeHold.objects.filter(pk__in=codes.order_by().values("hold"), voided_at=None)
    return list(holds.order_by("pk").select_for_update())


def _lock_shelves(codes: QuerySet[VoucherCode]) -> None:
    list(
        Shelf.objects.filter(pk__in=codes.values("shelf"))
        .order_by("pk")
        .select_for_update(no_key=True)
    )


def _change_stock(hold: CodeHold, *, by: int) -> None:
    """Adds `by` to the stock of a shelf for each of its codes in this hold."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE catalogue_shelf
               SET available_stock = available_stock + %s * held.number
              FROM (SELECT shelf_id, count(*) AS number FROM catalogue_vouchercode
                     WHERE hold_id = %s GROUP BY shelf_id) AS held
             WHERE id = held.shelf_id
            """,
            [by, hold.pk],
        )

"""`delete_old_data` deletes what may go after its time, and nothing else."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from axes.models import AccessAttempt, AccessLog
from django.apps import apps
from django.contrib.sessions.models import Session
from django.db import Error, connection, transaction
from django.utils import timezone

from audit.models import AuditAction, AuditEntry
from audit.services import record_action
from catalogue.models import VoucherCode
from embedded.environment import PROJECT
from merchants.models import Email, EmailKind, Invitation, MemberSession, Role
from operators.imports.models import FileImport, ImportKind, ImportState
from operators.telegram.models import TelegramLinkCode
from operators.upkeep import retention
from operators.upkeep.models import ReconcileRun, RunState
from operators.upkeep.reconcile import reconcile
from operators.upkeep.retention import EXPIRING, KINDS, delete_old_data
from operators.upkeep.tasks import delete_old_data as nightly
from operators.warnings.models import StaffWarning, WarningPost
from tests.commands import refusal, run
from tests.concurrency.racing import without_triggers
from tests.factories import (
    Merchant,
    buy_topup,
    make_account,
    make_field,
    make_operator,
    make_product,
    make_topup_product,
    move_now,
)
from tests.merchants.people import make_member
from tests.operators.back_office import make_case, make_proof
from topups.fulfilment.transitions import Move
from topups.models import Fulfilment, FulfilmentStatus

pytestmark = pytest.mark.django_db

PAGE = (PROJECT / "docs" / "operate" / "retention.md").read_text()
AGES = {"player_ids": 731, "emails": 91, "invitations": 366, "sessions": 2, "sign_ins": 91}
AGES |= {"read_audit": 731, "runs": 366, "case_files": 731, "delivery_files": 731}


def make_player_id(merchant: Merchant, ended: Any) -> str:
    product = make_topup_product()
    field = make_field(product)
    reference = buy_topup(merchant, product, player_id="0077", fields={str(field.number): "me"})
    if ended:
        operator = make_operator()
        move_now(reference=reference, move=Move.CLAIM, operator=operator)
        move_now(reference=reference, move=Move.COMPLETE, operator=operator)
        without_triggers(
            "UPDATE topups_fulfilment SET closed_at = %s WHERE order_reference = %s",
            ended,
            reference,
        )
    return reference


def make_email(merchant: Merchant, when: Any) -> None:
    Email.objects.create(kind=EmailKind.CHANGE, to="a@b.example", sent_at=when)


def make_invitation(merchant: Merchant, when: Any) -> None:
    account = merchant.account
    Invitation.objects.create(
        account=account,
        email=f"{when}@b.example"[:60].replace(" ", ""),
        role=Role.VIEWER,
        invited_by=make_operator().user,
        created_at=when or timezone.now(),
        expires_at=when or timezone.now() + timedelta(days=7),
    )


def make_session(merchant: Merchant, when: Any) -> None:
    ends = when or timezone.now() + timedelta(hours=1)
    member = make_member(make_account())
    for key in (f"of a member {when}", f"of staff {when}"):
        session = Session.objects.create(session_key=key[:40], session_data="", expire_date=ends)
        if "member" in key:
            MemberSession.objects.create(session=session, user=member.user)


def make_sign_in(merchant: Merchant, when: Any) -> None:
    name = f"anna {when}"
    AccessAttempt.objects.create(username=name, failures_since_start=1)
    AccessLog.objects.create(username=name)
    for model in (AccessAttempt, AccessLog):
        model.objects.filter(username=name).update(attempt_time=when or timezone.now())


def make_entry(merchant: Merchant, when: Any) -> None:
    for action in (AuditAction.CODE_REVEALED, AuditAction.KEY_ISSUED):
        entry = record_action(actor=None, action=action, on=VoucherCode(pk=1))
        without_triggers(
            "UPDATE audit_auditentry SET created_at = %s WHERE id = %s",
            when or timezone.now(),
            entry.pk,
        )


def make_case_file(merchant: Merchant, when: Any) -> None:
    order = merchant.buy(product_id=make_product(codes=1).pk, quantity=1).json()["data"]
    case = make_case(order["reference"])
    if when:
        without_triggers(
            "UPDATE cases_case SET closed_at = %s, state = 'rejected', waits_since = NULL,"
            " decided_by_id = (SELECT min(id) FROM auth_user) WHERE id = %s",
            when,
            case.pk,
        )


def make_delivery_file(merchant: Merchant, when: Any) -> None:
    proof = make_proof(merchant)
    if when:
        without_triggers(
            "UPDATE topups_deliveryproof SET added_at = %s WHERE id = %s", when, proof.pk
        )


def make_link_code(merchant: Merchant, when: Any) -> None:
    ends = when or timezone.now() + timedelta(minutes=5)
    TelegramLinkCode.objects.create(user=make_operator().user, digest=str(when), expires_at=ends)


def make_run(merchant: Merchant, when: Any) -> None:
    now = when or timezone.now()
    ReconcileRun.objects.create(state=RunState.CLEAN, started_at=now, finished_at=now)


def make_import(merchant: Merchant, when: Any) -> None:
    FileImport.objects.create(
        kind=ImportKind.CATALOGUE,
        state=ImportState.DISCARDED,
        file_name="old.json",
        size=1,
        created_by=make_operator().user,
        finished_at=when or timezone.now(),
    )


def make_warning(merchant: Merchant, when: Any) -> None:
    StaffWarning.objects.create(
        kind="low_stock", subject=f"shelf {when}", text="Low", ended_at=when
    )


def make_warning_post(merchant: Merchant, when: Any) -> None:
    now = when or timezone.now()
    WarningPost.objects.create(user=make_operator().user, lines=["Low"], created_at=now)


# How to make a row of each kind that ended at a moment, or that may not go (None).
MAKERS: dict[str, Callable[[Merchant, Any], object]] = {
    "player_ids": make_player_id,
    "case_files": make_case_file,
    "delivery_files": make_delivery_file,
    "emails": make_email,
    "invitations": make_invitation,
    "places_of_sessions": make_session,
    "sessions": make_session,
    "refused_passwords": make_sign_in,
    "sign_ins": make_sign_in,
    "read_audit_entries": make_entry,
    "telegram_link_codes": make_link_code,
    "reconcile_runs": make_run,
    "file_imports": make_import,
    "warnings": make_warning,
    "warning_posts": make_warning_post,
}


def old(kind: str, *, days: int = 0) -> Any:
    """A moment at which rows of this kind are just old enough, or `days` younger than that."""
    [expiring] = [each for each in EXPIRING if each.kind == kind]
    return timezone.now() - timedelta(days=AGES[expiring.days] - days)


def test_each_kind_is_tested() -> None:
    assert sorted(MAKERS) == sorted(KINDS)


@pytest.mark.parametrize("kind", MAKERS)
def test_only_old_rows_go(kind: str, merchant: Merchant) -> None:
    for moment in (old(kind), old(kind, days=2), None):
        MAKERS[kind](merchant, moment)
    kinds = ["places_of_sessions", kind] if kind == "sessions" else [kind]
    counted = delete_old_data(apply=False, kinds=kinds)
    expected = {"places_of_sessions": 1, kind: 1}
    if kind == "sessions":  # those of members are counted when their places are gone
        assert counted["rows"] == {"places_of_sessions": 1, "sessions": 1}
        expected["sessions"] = 2
    assert counted["applied"] is False
    assert counted["rows"][kind] == 1, "counting deletes nothing"
    assert delete_old_data(apply=False, kinds=kinds) == counted

    deleted = delete_old_data(apply=True, kinds=kinds)
    assert deleted["rows"] == {each: expected[each] for each in kinds}
    assert not any(delete_old_data(apply=True, kinds=kinds)["rows"].values())


@pytest.mark.django_db(transaction=True)  # `reconcile` takes a snapshot of its own
def test_an_order_without_its_player_id_still_answers(alone: None, merchant: Merchant) -> None:
    make_player_id(merchant, old("player_ids"))
    before = merchant.get("/orders").json()["data"]["items"][0]
    run("delete_old_data", "--apply", "--only", "player_ids")
    after = merchant.get(f"/orders/{before['reference']}").json()["data"]
    assert after == before | {"player_id": "(deleted)"}
    without_triggers("UPDATE topups_fulfilment SET player_id = 'deleted'")  # of earlier versions
    run("delete_old_data", "--apply", "--only", "player_ids")
    assert merchant.get(f"/orders/{before['reference']}").json()["data"] == after
    assert Fulfilment.objects.get().fields == []
    assert reconcile(decrypt=True)["findings"] == []


def test_a_replay_keeps_every_byte(merchant: Merchant, settings: Any) -> None:
    """Within the contract's seven days nothing of a purchase may go, whatever is configured."""
    settings.RETENTION_DAYS = dict.fromkeys(settings.RETENTION_DAYS, 30)
    product = make_topup_product()
    body = {"delivery_type": "top_up", "system_product_id": product.pk, "player_id": "0077"}
    first = merchant.buy("key", **body)
    reference, operator = first.json()["data"]["reference"], make_operator()
    move_now(reference=reference, move=Move.CLAIM, operator=operator)
    move_now(reference=reference, move=Move.COMPLETE, operator=operator)
    without_triggers(
        "UPDATE topups_fulfilment SET closed_at = %s WHERE order_reference = %s",
        timezone.now() - timedelta(days=8),
        reference,
    )
    settings.RETENTION_DAYS["read_audit"] = 730
    assert delete_old_data(apply=True)["rows"]["player_ids"] == 0
    again = merchant.buy("key", **body)
    assert (again.content, again["Idempotent-Replay"]) == (first.content, "true")


@pytest.mark.parametrize(
    ("change", "when"),
    [
        ("player_id = '(deleted)', fields = '[]'", timedelta(days=29)),
        ("player_id = '(deleted)', fields = '[]'", None),
        ("player_id = 'somebody', fields = '[]'", timedelta(days=800)),
        ("player_id = '(deleted)', fields = '[1]'", timedelta(days=800)),
        ("player_id = '(deleted)', fields = '[]', amount = 1", timedelta(days=800)),
    ],
)
def test_the_database_refuses_every_other_change(
    change: str, when: timedelta | None, merchant: Merchant
) -> None:
    ours = make_player_id(merchant, when and timezone.now() - when)
    with pytest.raises(Error, match="not allowed"), transaction.atomic():
        connection.cursor().execute(
            f"UPDATE topups_fulfilment SET {change} WHERE order_reference = %s", [ours]
        )


def test_a_player_id_stays_while_a_refund_is_owed(merchant: Merchant) -> None:
    reference = make_player_id(merchant, old("player_ids"))
    without_triggers(
        "UPDATE topups_fulfilment SET status = 'failed', failure_reason = 'wrong_id',"
        " refund_due_at = now() WHERE order_reference = %s",
        reference,
    )
    assert delete_old_data(apply=True, kinds=["player_ids"])["rows"] == {"player_ids": 0}
    ours = Fulfilment.objects.filter(order_reference=reference)
    with pytest.raises(Error, match="not allowed"), transaction.atomic():
        ours.update(player_id="(deleted)", fields=[])
    assert ours.get().status == FulfilmentStatus.FAILED

    without_triggers(
        "UPDATE topups_fulfilment SET refunded_at = now() WHERE order_reference = %s", reference
    )
    assert delete_old_data(apply=True, kinds=["player_ids"])["rows"] == {"player_ids": 1}
    assert ours.get().player_id == "(deleted)"


@pytest.mark.parametrize(("action", "days"), [("signed_in", 89), ("key_issued", 4000)])
def test_the_database_keeps_young_entries_and_changes(action: str, days: int) -> None:
    entry = record_action(actor=None, action=AuditAction(action), on=VoucherCode(pk=1))
    without_triggers(
        "UPDATE audit_auditentry SET created_at = %s", timezone.now() - timedelta(days=days)
    )
    with pytest.raises(Error, match="append-only"), transaction.atomic():
        AuditEntry.objects.filter(pk=entry.pk).delete()


def test_a_run_is_recorded_and_can_be_continued(merchant: Merchant) -> None:
    for kind in ("emails", "reconcile_runs"):
        MAKERS[kind](merchant, old(kind))
    stopped = delete_old_data(apply=True, seconds=0)
    assert (stopped["finished"], sum(stopped["rows"].values())) == (False, 0)
    told: list[str] = []
    delete_old_data(apply=True, report=lambda kind, rows: told.append(f"{kind} {rows}"))
    assert "emails 1" in told
    entries = AuditEntry.objects.filter(action=AuditAction.OLD_DATA_DELETED).order_by("id")
    assert list(entries.values_list("note", flat=True)) == [
        *("Started", "Deleted: nothing"),
        *("Started", "Deleted: emails 1, reconcile_runs 1"),
    ]


def test_a_large_table_does_not_use_up_the_time_of_the_others(
    merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kinds take turns, a window each."""
    monkeypatch.setattr(retention, "WINDOW", 1)
    for _ in range(2):
        MAKERS["emails"](merchant, old("emails"))
    served: list[str] = []
    next_window = retention._Cut.next_window

    def recorded(cut: retention._Cut) -> int:
        served.append(cut.kind)
        return next_window(cut)

    monkeypatch.setattr(retention._Cut, "next_window", recorded)
    found = delete_old_data(apply=True, kinds=["emails", "reconcile_runs"])

    assert found["rows"] == {"emails": 2, "reconcile_runs": 0}
    assert served[:3] == ["emails", "reconcile_runs", "emails"]


def test_the_clock_of_a_host_deletes_nothing(
    merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_email(merchant, timezone.now())
    ahead = timezone.now() + timedelta(days=365)
    monkeypatch.setattr(timezone, "now", lambda: ahead)

    assert delete_old_data(apply=True, kinds=["emails"])["rows"] == {"emails": 0}


def test_the_nightly_task_and_the_command_do_the_same(merchant: Merchant) -> None:
    make_email(merchant, old("emails"))
    counted = run("delete_old_data")
    assert (counted["applied"], counted["rows"]["emails"]) == (False, 1)
    nightly()
    assert run("delete_old_data")["rows"]["emails"] == 0
    assert "invalid choice" in refusal("delete_old_data", "--only", "orders")


def test_the_page_names_every_table_once() -> None:
    rows = re.findall(r"^\| `([a-z_]+)` \| ([^|]+)\|", PAGE, re.MULTILINE)
    tables = {model._meta.db_table for model in apps.get_models(include_auto_created=True)}
    ours = tables - {table for table in tables if table.startswith("pytest_")}
    assert sorted(table for table, _ in rows) == sorted({*ours, "django_migrations"})
    expiring = {each.table for each in EXPIRING}
    assert {table for table, kept in rows if "RETENTION_" in kept} == expiring

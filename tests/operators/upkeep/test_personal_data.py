"""What is stored about people is declared, and `person` finds, hands over and deletes it."""

import json
import re
import stat
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from axes.models import AccessAttempt, AccessLog
from django.apps import apps
from django.contrib.auth.models import Group, User
from django.contrib.postgres.fields import ArrayField
from django.contrib.sessions.models import Session
from django.db import connection, models
from django.utils import timezone
from django_otp_webauthn.models import (
    WebAuthnAttestation,
    WebAuthnCredential,
    WebAuthnUserHandle,
)

from accounts.companies import company_of, save_company
from accounts.models import Account, OwnCompany, Preferences, SecondFactor
from audit.models import AuditAction, AuditEntry
from cases.models import CaseFile
from core.backoffice.registry import declared_rights
from embedded.environment import PROJECT
from merchants.models import (
    Email,
    EmailedReport,
    EmailKind,
    Invitation,
    MemberSession,
    Membership,
    Role,
    SentReport,
)
from merchants.people.company import propose_company
from merchants.people.members import block_member, remove_member
from operators.sign_in.access import end_access
from operators.sign_in.models import CompanyIdentity, TwoPersonChange
from operators.telegram.models import TelegramLink, TelegramLinkCode
from operators.upkeep.personal_data import PERSONAL
from operators.upkeep.reconcile import reconcile
from operators.warnings.models import WarningPost, WarningRule
from tests.commands import refusal, run
from tests.concurrency.racing import without_triggers
from tests.factories import Merchant, buy_topup, make_account, make_merchant, make_product
from tests.merchants.people import make_member
from tests.operators.back_office import form_of, make_case, make_proof, make_staff, signed_in, url
from topups.models import Fulfilment

pytestmark = pytest.mark.django_db

DOCS = PROJECT / "docs" / "operate"
TEXT: Any = (
    *(models.CharField, models.TextField, models.JSONField, models.BinaryField),
    *(models.GenericIPAddressField, ArrayField),
)
# Columns of text that are about no person: names of goods and roles, states, references, keys,
# sealed codes, figures. `axes_accessfailurelog` and `django_admin_log` are not used.
NO_PERSON = {
    "accounts_apiclient": "allowed_networks name",
    "accounts_apikey": "digest prefix",
    "accounts_logo": "picture",
    "accounts_requestrecord": "code idempotency_key method order_reference path problems reason",
    "audit_auditentry": "action object_id object_type request_id",
    "auth_group": "name",
    "auth_permission": "codename name",
    "axes_accessfailurelog": "http_accept ip_address path_info user_agent username",
    "catalogue_batch": "file_digest",
    "catalogue_category": "name",
    "catalogue_pricelist": "name",
    "catalogue_product": "name",
    "catalogue_referencelink": "reference",
    "catalogue_variation": "name",
    "catalogue_vouchercode": "digest sealed",
    "core_encryptionkey": "wrapped",
    "core_rootfingerprint": "fingerprint",
    "django_admin_log": "change_message object_id object_repr",
    "django_content_type": "app_label model",
    "figures_countedpayback": "kind",
    "figures_exchangerate": "into",
    "idempotency_idempotencyrecord": "fingerprint key order_reference",
    "imports_fileimport": "batch file_name problems result sealed",
    "imports_filepart": "sealed",
    "merchants_bookkey": "digest prefix",
    "merchants_preparedfile": "content_type name problem sealed",
    "merchants_preparedpart": "sealed",
    "orders_lostpurchase": "reference",
    "orders_order": "codes_mac idempotency_key reference",
    "sign_in_twopersonchange": "right",
    "telegram_announcement": "last_error",
    "telegram_announcementchat": "last_error",
    "telegram_platformsettings": "time_zone",
    "topups_fieldid": "name",
    "topups_fulfilment": "order_reference",
    "topups_fulfilmentevent": "move",
    "topups_topupfield": "label name",
    "topups_topupfieldoption": "label value",
    "topups_topupproduct": "external_provider name",
    "upkeep_copy": "host",
    "upkeep_heartbeat": "host",
    "upkeep_reconcilerun": "checked failure findings progress warnings",
    "wallets_bankdetails": "details",
    "wallets_bookingapproval": "booking_reference order_reference",
    "wallets_bookingkey": "key",
    "wallets_ledgerentry": "booking_reference chain order_reference",
    "wallets_monthlystatement": "bank_details",
    "wallets_signedroot": "previous public_key root signature",
    "wallets_wallet": "chain",
    "warnings_staffwarning": "kind",
    "warnings_warningrule": "kind",
}
CURRENCIES = {"currency", "cost_currency"}
ADDRESS, NAME = "anna@merchant.example", "Anna Quittenbaum"
SECRET = "never-handed-over"


def text_columns() -> Iterator[tuple[str, str]]:
    """The tables and columns of text, without those that hold one of a few words."""
    for model in apps.get_models(include_auto_created=True):
        for column in model._meta.concrete_fields:
            few = column.is_relation or column.choices or column.column in CURRENCIES
            if isinstance(column, TEXT) and not few:
                yield model._meta.db_table, column.column


def test_each_column_of_text_is_declared_as_about_a_person_or_not() -> None:
    about = {(one.table, column) for one in PERSONAL for column in (*one.columns, *one.withheld)}
    none = {(table, column) for table, columns in NO_PERSON.items() for column in columns.split()}
    columns = set(text_columns())
    assert columns - about - none == set(), "declare it as Personal, or name it in NO_PERSON"
    assert (about | none) - columns == {("telegram_telegramlink", "telegram_user_id")}
    assert about & none == set()


def test_the_service_may_delete_what_is_declared_so() -> None:
    for one in PERSONAL:
        assert bool(one.find) or not one.delete
        assert bool(one.delete) or one.kept, one.table
        if one.delete:
            right = "DELETE" if one.delete == "DELETE" else "UPDATE"
            assert right in declared_rights()[one.table], one.table


def test_the_page_has_the_table_that_is_declared() -> None:
    page = (DOCS / "personal-data.md").read_text().partition("## Every table")[2]
    retention = (DOCS / "retention.md").read_text()
    kept = dict(re.findall(r"^\| `([a-z_]+)` \| ([^|]+) \|", retention, re.MULTILINE))
    rows = [
        f"| {one.whose} | `{one.table}` | {', '.join([*one.columns, *one.withheld]) or 'keys'}"
        f" | {one.why} | {kept[one.table]} | {_deletes(one)} |"
        for one in PERSONAL
    ]
    assert [row for row in rows if row not in page] == []
    assert page.count("\n| ") == len(rows) + 1


def _deletes(one: Any) -> str:
    does = "" if not one.delete else "deletes rows" if one.delete == "DELETE" else "empties columns"
    keeps = one.kept and f"keeps {one.kept}"
    return "; ".join(filter(None, [does, keeps]))


def holding(text: str) -> set[str]:
    """The tables with a row that holds this text in any column."""
    found = set()
    with connection.cursor() as cursor:
        for table in {table for table, _ in text_columns()}:
            cursor.execute(
                f"SELECT count(*) FROM {table} AS row WHERE row::text ILIKE %s",
                [f"%{text}%"],
            )
            if cursor.fetchone()[0]:
                found.add(table)
    return found


def keeping() -> set[str]:
    return {one.table for one in PERSONAL if one.kept}


def rows_of_user(user: User) -> None:
    """A row in each table that both members and staff have rows in."""
    Preferences.objects.create(user=user, time_zone="Europe/Berlin", language="de")
    secret = f"{SECRET}-{user.pk}"
    factor = SecondFactor.objects.create(user=user, name="phone")
    factor.backup_codes.create(digest=secret)
    passkey = WebAuthnCredential.objects.create(
        user=user, name="laptop", credential_id=secret.encode(), public_key=secret.encode()
    )
    WebAuthnAttestation.objects.create(
        credential=passkey, fmt="none", data=b"", client_data_json=b""
    )
    WebAuthnUserHandle.objects.create(user=user, handle_hex=secret)
    report = EmailedReport.objects.create(user=user, kind="orders", every="day")
    SentReport.objects.create(report=report, first_day=date(2026, 1, 1))
    for model in (AccessAttempt, AccessLog):
        model.objects.create(
            username=user.username, **{"failures_since_start": 1} if model is AccessAttempt else {}
        )
    Email.objects.create(kind=EmailKind.CHANGE, to=user.email, facts={"by": user.email})


def make_leaver(account: Account) -> Membership:
    """A former member with rows in every table that members have rows in."""
    make_member(account)
    member = make_member(account, email=ADDRESS)
    User.objects.filter(pk=member.user_id).update(first_name="Anna", last_name="Quittenbaum")
    rows_of_user(member.user)
    Invitation.objects.create(
        account=account, email=ADDRESS.title(), role=Role.OWNER, invited_by=make_staff(),
        expires_at=timezone.now(),
    )  # fmt: skip
    session = Session.objects.create(session_key="s", session_data="", expire_date=timezone.now())
    MemberSession.objects.create(session=session, user=member.user, address="192.0.2.7")
    contact = {"contact": NAME, "billing_email": ADDRESS}
    save_company(account=account, data={"legal_name": "Acme", **contact}, actor=member.user)
    propose_company(account=account, data={"legal_name": "Acme 2", **contact}, actor=member.user)
    return remove_member(membership=member, actor=member.user)


def test_a_member_is_handed_over_and_deleted(merchant: Merchant, tmp_path: Path) -> None:
    member = make_leaver(merchant.account)
    order = merchant.buy(product_id=make_product(codes=1).pk, quantity=1).json()["data"]
    case = make_case(order["reference"])
    without_triggers("UPDATE cases_casemessage SET author_id = %s", member.user_id)
    entries = AuditEntry.objects.filter(actor=member.user).count()
    assert run("person", "find", ADDRESS)["email"]["merchants_invitation"] == 1

    file = tmp_path / "anna.json"
    counts = run("person", "hand_over", "email", ADDRESS, "--to", file)["rows"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    text = file.read_text()
    assert json.loads(text)["auth_user"][0]["last_name"] == "Quittenbaum"
    assert {table: len(rows) for table, rows in json.loads(text).items()} == counts
    for secret in (SECRET, "pbkdf2", "md5", SECRET.encode().hex()):
        assert secret not in text
    assert "File exists" in refusal("person", "hand_over", "email", ADDRESS, "--to", file)

    preview = run("person", "delete", "email", ADDRESS)
    assert preview["applied"] is False
    assert ADDRESS in User.objects.get(pk=member.user_id).username
    assert CaseFile.objects.filter(message__case=case).exists(), "the case is open"
    without_triggers(
        "UPDATE cases_case SET closed_at = now(), state = 'rejected', waits_since = NULL,"
        " decided_by_id = opened_by_id WHERE id = %s",
        case.pk,
    )
    deleted = run("person", "delete", "email", ADDRESS, "--apply")
    assert deleted["deleted"] == preview["deleted"] | {"cases_casefile": 1}
    assert "cannot be rewritten" in deleted["kept"]["audit_auditentry"]["kept"]

    user = User.objects.get(pk=member.user_id)
    assert (user.username, user.email, user.last_name) == (f"deleted {user.pk}", "", "")
    assert not user.has_usable_password()
    assert holding(ADDRESS) <= keeping()
    assert holding("Quittenbaum") <= keeping() - {"auth_user"}
    assert holding("192.0.2.7") == set()
    assert AuditEntry.objects.filter(actor=user).count() == entries
    entry = AuditEntry.objects.get(action=AuditAction.PERSON_DELETED)
    assert (entry.object_id, entry.reference) == (str(user.pk), "")
    assert entry.actor_name.startswith("shell:")
    assert "auth_user 1" in entry.note
    assert run("person", "delete", "email", ADDRESS)["deleted"] == {}

    run("person", "delete", "name", NAME, "--apply")
    assert holding("Quittenbaum") <= keeping() - {
        *("auth_user", "accounts_company", "merchants_companyproposal")
    }


def make_former_staff() -> User:
    """A former member of staff with rows in every table that staff have rows in."""
    user = User.objects.create_user("anna", ADDRESS, is_staff=True, first_name="Anna")
    rows_of_user(user)
    user.groups.add(Group.objects.earliest("pk"))
    user.user_permissions.add(1)
    CompanyIdentity.objects.create(user=user, issuer="https://id.example", subject=ADDRESS)
    TelegramLink.objects.create(user=user, telegram_user_id=7_700_077)
    TelegramLinkCode.objects.create(
        user=user, digest=f"{SECRET}-{user.pk}", expires_at=timezone.now()
    )
    WarningRule.objects.create(kind="low_stock", limit=1).people.add(user)
    WarningPost.objects.create(user=user, lines=["Low"])
    for what in (f"the name anna and the email {ADDRESS}", "the role Finance"):
        TwoPersonChange.objects.create(what=what, about=user, asked_by=make_staff())
    OwnCompany.objects.update_or_create(defaults={"legal_name": "We", "billing_email": ADDRESS})
    end_access(user=user, actor=make_staff())
    return user


def test_a_member_of_staff_keeps_the_username_alone(tmp_path: Path) -> None:
    user = make_former_staff()
    found = run("person", "find", "7700077")
    assert found["telegram_id"] == run("person", "find", "Anna")["name"]
    deleted = run("person", "delete", "telegram_id", "7700077", "--apply")["deleted"]

    user.refresh_from_db()
    assert (user.username, user.email, user.first_name) == ("anna", "", "")
    assert not user.groups.exists()
    assert holding(ADDRESS) <= keeping() - {"auth_user", "accounts_owncompany"}
    assert holding("7700077") == set()
    assert TwoPersonChange.objects.filter(about=user, what="the role Finance").exists()
    left = {one.table for one in PERSONAL if one.delete} - set(deleted)
    assert left == {
        *("accounts_company", "merchants_companyproposal", "merchants_membership"),
        *("merchants_membersession", "django_session", "merchants_invitation"),
        *("cases_casefile", "topups_fulfilment", "topups_deliveryfile"),
    }


def test_one_administrator_revives_no_deleted_person(db: None) -> None:
    user = make_former_staff()
    User.objects.filter(pk=user.pk).update(last_login=timezone.now())
    run("person", "delete", "name", "anna", "--apply")
    administrator = make_staff()
    administrator.groups.add(Group.objects.get(name="Administrator"))
    browser = signed_in(administrator)

    form = form_of(browser, url(user))
    for changed in ({"username": "other"}, {"email": "evil@x.example", "is_active": "on"}):
        assert "another administrator" in (
            browser.post(url(user), {**form, **changed}, follow=True).content.decode()
        )
        user.refresh_from_db()
        assert (user.username, user.email, user.is_active) == ("anna", "", False)


def test_a_player_is_deleted_when_replays_are_over(merchant: Merchant, tmp_path: Path) -> None:
    player = "0077-of-one-player"
    order = make_proof(merchant, player_id=player).fulfilment
    younger = run("person", "delete", "player_id", player, "--apply")
    assert (younger["deleted"], younger["kept"]["topups_fulfilment"]["rows"]) == ({}, 1)

    without_triggers(
        "UPDATE topups_fulfilment SET closed_at = now() - interval '31 days' WHERE id = %s",
        order.pk,
    )
    without_triggers("UPDATE topups_fulfilmentevent SET note = 'Max paid with a stolen card'")
    file = tmp_path / "player.json"
    run("person", "hand_over", "player_id", player, "--to", file)
    assert "topups_fulfilmentevent" in file.read_text()
    assert "Max" not in file.read_text()
    other = buy_topup(make_merchant(), player_id=player)
    assert "different games" in refusal("person", "delete", "player_id", player, "--apply")
    words = ("player_id", player, "--product", order.product_id, "--apply")
    assert run("person", "delete", *words)["deleted"] == {
        "topups_deliveryfile": 1,
        "topups_fulfilment": 1,
    }
    assert list(Fulfilment.objects.filter(player_id=player)) == [
        Fulfilment.objects.get(order_reference=other)
    ]
    assert (
        player not in AuditEntry.objects.filter(action=AuditAction.PERSON_DELETED).latest("pk").note
    )


@pytest.mark.django_db(transaction=True)  # `reconcile` takes a snapshot of its own
def test_reconcile_stays_clean(alone: None, merchant: Merchant) -> None:
    make_leaver(merchant.account)
    make_former_staff()
    assert "Several" in refusal("person", "delete", "email", ADDRESS)
    run("person", "delete", "name", "anna", "--apply")
    run("person", "delete", "email", ADDRESS, "--apply")
    assert reconcile()["ok"]


def test_people_who_act_are_not_deleted() -> None:
    account = make_account()
    owner, staff = make_member(account), make_staff()
    for name in (owner.user.email, staff.username):
        assert "can still sign in" in refusal("person", "delete", "name", name, "--apply")
    for company in (account, make_account()):
        save_company(account=company, data={"legal_name": "We", "contact": NAME}, actor=staff)
    assert f"contact of account {account.pk}, " in refusal("person", "delete", "name", NAME)
    block_member(membership=owner, actor=staff, reason="x")
    assert "only owner" in refusal("person", "delete", "email", owner.user.email, "--apply")
    Account.objects.filter(pk=account.pk).update(enabled=False)
    run("person", "delete", "email", owner.user.email, "--apply")
    assert "Nothing is stored" in refusal("person", "delete", "email", "b@c.example")


@pytest.mark.parametrize("text", ["", " ", "\x00", "\udcff", "x" * 201])
def test_an_odd_text_finds_nobody(text: str) -> None:
    OwnCompany.objects.update_or_create(defaults={"legal_name": "We", "billing_email": ADDRESS})
    User.objects.filter(pk=make_staff().pk).update(is_active=False)
    for words in (["find"], ["delete", "name"], ["delete", "player_id"]):
        assert "The text" in refusal("person", *words, text)
    assert OwnCompany.objects.get().billing_email == ADDRESS


def test_a_contact_and_a_receiver_of_bills_are_two_people(tmp_path: Path) -> None:
    account = make_account()
    both = {"contact": NAME, "billing_email": ADDRESS}
    save_company(account=account, data={"legal_name": "We", **both}, actor=make_staff())
    file = tmp_path / "bills.json"
    run("person", "hand_over", "email", ADDRESS, "--to", file)
    assert NAME not in file.read_text()

    run("person", "delete", "email", ADDRESS, "--apply")
    company = company_of(account)
    assert company
    assert (company.contact, company.billing_email) == (NAME, "")


def test_an_address_that_somebody_else_signs_in_with_is_not_deleted() -> None:
    user, other = make_former_staff(), make_staff()
    User.objects.filter(pk=other.pk).update(email=user.email)
    assert "has the same email" in refusal("person", "delete", "name", "anna", "--apply")


def test_a_name_is_found_with_letters_that_python_writes_otherwise(merchant: Merchant) -> None:
    """The small letter of İ is one character in PostgreSQL, and two in Python."""
    member = make_member(merchant.account)
    name = {"first_name": "İpek", "last_name": "Kaya"}
    User.objects.filter(pk=member.user_id).update(**name)
    save_company(
        account=merchant.account,
        data={"legal_name": "Acme", "contact": "İpek Kaya"},
        actor=member.user,
    )

    found = run("person", "find", "İpek Kaya")["name"]

    assert found["auth_user"] == 1
    assert found["accounts_company"] == 1

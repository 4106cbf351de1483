"""The database enforces what the models declare: references, uniqueness and checks.

Each constraint is tried alone, by a statement that breaks it. Our triggers are off meanwhile: they
refuse most statements first.
"""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.db import IntegrityError, connection, transaction
from django.db.models import CheckConstraint, Model, Q, UniqueConstraint
from django.db.models.fields import PositiveIntegerRelDbTypeMixin
from django.utils import timezone
from pytest_django import DjangoDbBlocker

from accounts.models import (
    ApiKey,
    BackupCode,
    Company,
    Logo,
    OwnCompany,
    Preferences,
    SecondFactor,
)
from cases.services import replace_code_of_case
from catalogue.models import CodeTrace, Shelf, VoucherCode
from catalogue.stock.holds import hold_codes
from catalogue.stock.traces import trace_codes
from embedded.environment import PROJECT
from figures.margin_counting import count_margins
from figures.models import AgreedFall, EarlierList, EarlierTerms, StockThreshold
from figures.sales_counting import count_sales
from figures.stock_counting import count_stock
from merchants.email.reports import choose_report
from merchants.models import (
    BalanceAlert,
    BookKey,
    CompanyProposal,
    Frequency,
    PreparedFile,
    SentReport,
)
from operators.imports.models import FilePart
from operators.sign_in.models import CompanyIdentity
from operators.sign_in.second_person import ask_or_agree
from operators.telegram.models import (
    AnnouncementChat,
    AnnouncementRoute,
    PlatformSettings,
    TelegramLinkCode,
)
from operators.upkeep.models import Copy, Heartbeat, HeartbeatKind, ReconcileRun
from operators.warnings.models import WarningPost
from orders.recovery.settlements import settle_lost_purchase
from orders.remedies.bookings import approve
from orders.spending_limits import Limits, set_spending_limits
from tests.cases.complaints import make_complaint
from tests.factories import (
    link,
    make_account,
    make_category,
    make_field,
    make_lost_purchase,
    make_merchant,
    make_product,
    make_topup_product,
    own_shelf,
)
from tests.operators.back_office import (
    World,
    make_approval,
    make_close,
    make_prepared_file,
    make_proof,
    rows_for_a_module,
)
from topups.models import TopUpProduct
from wallets.limits import count_booking
from wallets.models import BookingApproval, EntryKind, RootLeaf, SignedRoot, Wallet

pytestmark = pytest.mark.django_db

OURS = {one.label for one in apps.get_app_configs() if (PROJECT / one.name.split(".")[0]).is_dir()}
MODELS = [model for model in apps.get_models() if model._meta.app_label in OURS]

# What breaks each check, as the SET of an UPDATE. Counts are not here: -1 breaks their checks.
BROKEN = {
    "core_rootfingerprint_is_one": "id = 2",
    "accounts_account_currency_is_a_code": "currency = 'usd'",
    "accounts_apiclient_rate_limit_is_positive": "rate_limit_per_minute = 0",
    "accounts_owncompany_is_one": "id = 2",
    "catalogue_code_sold_is_not_held": "order_id = 1, hold_id = 1",
    "catalogue_product_currency_is_a_code": "currency = 'US'",
    "catalogue_batch_cost_has_a_currency": "unit_cost = 1, cost_currency = ''",
    "catalogue_batch_has_codes": "first_code = last_code + 1",
    "catalogue_product_type_is_known": "type = 'gift'",
    "catalogue_price_entry_ends_after_its_start": "valid_until = valid_from",
    "catalogue_price_entry_has_one_target": "product_id = 1, category_id = 1",
    "catalogue_price_entry_percent_has_limits": "percent_off = 100",
    "catalogue_price_entry_price_has_a_target": "product_id = NULL, price = 1",
    "catalogue_price_entry_price_has_limits": "price = 0",
    "catalogue_price_entry_says_one_thing": "price = 1, percent_off = 1",
    "catalogue_price_list_currency_is_a_code": "currency = 'usd'",
    "catalogue_shelf_next_price_has_limits_and_a_time":
        "next_price = 1, next_price_from = NULL",
    "catalogue_shelf_price_has_a_limit": "price = 1e14",
    "catalogue_shelf_price_is_positive": "price = 0",
    "catalogue_shelf_quantity_step_is_positive": "quantity_step = 0",
    "catalogue_shelf_quantity_step_has_a_limit": "quantity_step = 101",
    "idempotency_record_order_has_a_time": "order_reference = 'R', bought_at = NULL",
    "idempotency_record_success_has_an_order":
        "response = 'x', order_reference = NULL, bought_at = NULL",
    "merchants_balancealert_level_is_positive": "level = 0",
    "merchants_email_ends_once": "sent_at = now(), given_up_at = now()",
    "merchants_email_kind_is_known": "kind = 'offer'",
    "merchants_invitation_accepted_if_approved":
        "needs_approval = true, approved_at = NULL, approved_by_id = NULL, accepted_at = now()",
    "merchants_invitation_approved_by_another":
        "approved_at = now(), approved_by_id = invited_by_id",
    "merchants_invitation_ends_once": "accepted_at = now(), withdrawn_at = now()",
    "merchants_invitation_role_is_known": "role = 'admin'",
    "merchants_prepared_for_a_person_or_a_key": "user_id = NULL, key_id = NULL",
    "merchants_prepared_state_is_known": "state = 'lost'",
    "merchants_proposal_is_decided_by_a_person": "state = 'accepted'",
    "merchants_report_frequency_is_known": "every = 'year'",
    "merchants_membership_role_is_known": "role = 'admin'",
    "sign_in_change_approved_by_another": "approved_at = now(), approved_by_id = asked_by_id",
    "telegram_announcement_announced_has_a_message": "state = 'announced', message_id = NULL",
    "telegram_announcement_sending_is_busy": "state = 'sending', busy_until = NULL",
    "telegram_announcement_state_is_known": "state = 'lost'",
    "upkeep_heartbeat_kind_is_known": "kind = 'bot'",
    "upkeep_copy_kind_is_known": "kind = 'all'",
    "imports_import_is_confirmed": "state = 'importing', confirmed_by_id = NULL",
    "imports_import_keeps_its_file_while_open": "state = 'ready', sealed = NULL",
    "imports_import_kind_is_known": "kind = 'prices'",
    "imports_import_of_codes_has_a_shelf": "kind = 'codes', shelf_id = NULL",
    "imports_import_state_is_known": "state = 'lost'",
    "telegram_link_is_to_a_person": "telegram_user_id = -1",
    "telegram_route_is_of_one_thing": "category_id = NULL, product_id = NULL",
    "telegram_route_topic_is_a_topic": "topic_id = 1",
    "upkeep_run_ends_once": "state = 'clean', finished_at = NULL",
    "upkeep_run_state_is_known": "state = 'lost'",
    "telegram_settings_are_one_row": "id = 2",
    "telegram_settings_quiet_has_two_ends": "quiet_from = '22:00', quiet_until = NULL",
    "telegram_settings_repeat_is_positive": "repeat_minutes = 0",
    "telegram_settings_topic_is_of_a_chat": "topic_id = 2, chat_id = NULL",
    "figures_daily_sales_of_one_thing": "shelf_id = NULL, topup_product_id = NULL",
    "figures_daily_total_of_one_thing": "account_id = 1, shelf_id = 1, topup_product_id = NULL",
    "figures_dailymargin_of_one_thing": "shelf_id = NULL, topup_product_id = NULL",
    "figures_dailymarginsum_of_one_thing": (
        "account_id = NULL, shelf_id = NULL, topup_product_id = NULL"
    ),
    "figures_agreedfall_of_one_thing": "shelf_id = NULL, topup_product_id = NULL",
    "figures_earlierterms_of_one_thing": "shelf_id = NULL, topup_product_id = NULL",
    "figures_exchange_rate_is_of_two_currencies": 'currency = "into"',
    "figures_exchange_rate_is_positive": "rate = 0",
    "figures_monthlymargin_of_one_thing": "shelf_id = NULL, topup_product_id = NULL",
    "figures_monthlymarginsum_of_one_thing": (
        "account_id = NULL, shelf_id = NULL, topup_product_id = NULL"
    ),
    "orders_spending_limit_is_given": "per_day = NULL, per_month = NULL",
    "orders_spending_limit_is_positive": "per_day = 0",
    "figures_stock_threshold_has_a_limit": "stock = NULL, days = NULL",
    "figures_stock_threshold_of_one_thing": "shelf_id = NULL, topup_product_id = NULL",
    "orders_order_is_bound_to_its_codes": "shelf_id = 1, codes_mac = NULL",
    "orders_order_quantity_is_whole_units": "quantity = 3, units_per_sale = 2",
    "orders_order_sells_codes_or_a_topup": "shelf_id = NULL, fulfilment_id = NULL",
    "orders_order_total_is_exact": "total_price = total_price + 0.0001",
    "orders_order_is_paid_or_replaces": "unit_price = 0, total_price = 0",
    "cases_case_is_closed_by_a_person": "state = 'rejected', decided_by_id = NULL",
    "cases_case_replaces_one_code":
        "state = 'replaced', code_id = NULL, closed_at = now(), decided_by_id = 1,"
        " waits_since = NULL",
    "cases_case_state_is_known": "state = 'lost'",
    "topups_field_type_is_known": "type = 'date'",
    "topups_fulfilment_agrees_with_its_status": "status = 'pending', refund_due_at = now()",
    "topups_fulfilment_amount_is_positive": "amount = 0",
    "topups_product_currency_is_a_code": "currency = 'US'",
    "topups_product_next_price_has_limits_and_a_time": "next_price = 0, next_price_from = now()",
    "topups_product_price_is_positive": "price = 0",
    "topups_product_promise_is_positive": "promised_minutes = 0",
    "topups_product_provider_is_named": "external_provider = ''",
    "wallets_alone_amount_not_negative": "amount = -1",
    "wallets_alone_is_of_a_booking": "kind = 'purchase'",
    "wallets_limit_per_day_not_negative": "per_day = -1",
    "wallets_approval_booked_has_its_entry":
        "state = 'booked', decided_by_id = 1, decided_at = now(), entry_id = NULL",
    "wallets_approval_by_another":
        "state = 'rejected', decided_by_id = asked_by_id, decided_at = now()",
    "wallets_approval_is_decided_by_a_person": "state = 'rejected', decided_by_id = NULL",
    "wallets_approval_is_of_a_booking": "kind = 'purchase'",
    "wallets_approval_state_is_known": "state = 'lost'",
    "wallets_close_adds_up": "closing = closing + 1",
    "wallets_day_adds_up": "closing = closing + 1",
    "wallets_bank_details_currency_is_a_code": "currency = 'usd'",
    "wallets_transfer_amount_is_positive": "amount = 0",
    "wallets_transfer_is_closed_by_a_person": "closed_at = now()",
    "wallets_entry_balance_not_negative": "balance_after = -1",
    "wallets_entry_booking_reference_is_known": "kind = 'deposit', booking_reference = NULL",
    "wallets_entry_agrees_with_its_kind": "kind = 'deposit', counterpart = 'sales'",
    "wallets_limit_amount_not_negative": "amount = -1",
    "wallets_entry_reason_is_of_a_booking": "reason = 'x', booking_reference = NULL",
    "wallets_limit_currency_is_a_code": "currency = 'usd'",
    "wallets_limit_is_of_a_booking": "kind = 'purchase'",
    "wallets_wallet_balance_not_negative": "balance = -1",
    "warnings_rule_limit": '"limit" = -1',
}  # fmt: skip


def make_past_of_prices(product: TopUpProduct) -> None:
    now = timezone.now()
    AgreedFall.objects.create(topup_product=product, since=now)
    EarlierTerms.objects.create(topup_product=product, step=1, until=now)
    EarlierList.objects.create(account=make_account(), until=now)


def make_companies(person: User) -> None:
    company = {"legal_name": "Acme Ltd", "account": make_account()}
    Company.objects.create(**company)
    logo = Logo.objects.create(picture=b"x")
    OwnCompany.objects.update_or_create(pk=1, defaults={"legal_name": "Shop Ltd", "logo": logo})
    CompanyProposal.objects.create(**company, proposed_by=person)


@pytest.fixture(scope="module", autouse=True)
def _rows(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """A row of every table, made once for this module."""
    with rows_for_a_module(django_db_blocker):
        make_rows()
        yield


def make_rows() -> None:
    World().grow(1)
    person = User.objects.create_user("anna")
    BackupCode.objects.create(factor=SecondFactor.objects.create(user=person), digest="digest")
    product = make_topup_product()
    make_field(product, "dropdown", options=["eu"])
    TopUpProduct.objects.filter(pk=product.pk).update(price=3)
    link(make_account(), "mine", own_shelf(make_product()))
    PlatformSettings.objects.create()
    Heartbeat.objects.create(kind=HeartbeatKind.BEAT, host="host")
    ReconcileRun.objects.create()
    Copy.objects.create(kind="backup", host="db1")
    ApiKey.objects.filter(pk=ApiKey.objects.values("pk")[:1]).update(form=uuid4())
    AnnouncementChat.objects.create(chat_id=-1001)
    AnnouncementRoute.objects.create(category=make_category(), chat_id=-1001)
    CompanyIdentity.objects.create(user=person, issuer="issuer", subject="subject")
    TelegramLinkCode.objects.create(user=person, digest="digest", expires_at=timezone.now())
    BalanceAlert.objects.create(account=make_account(), level=5)
    digest = bytes(VoucherCode.objects.filter(order_id=None).values_list("digest", flat=True)[0])
    hold_codes(codes=Q(digest__in=[digest]), reason="test", held_by="shell:anna")
    settle_lost_purchase(
        make_lost_purchase(make_merchant().client), debits=True, note="x", actor="shell:anna"
    )
    count_sales()
    count_margins()
    count_stock()
    trace_codes()
    CodeTrace.objects.create(code=VoucherCode.objects.latest("pk"), digest=1)
    Preferences.objects.create(user=person, time_zone="Asia/Tokyo")
    StockThreshold.objects.create(topup_product=product, stock=3)
    make_past_of_prices(product)
    make_files(person)
    WarningPost.objects.create(user=person, lines=["Low"])
    set_spending_limits(client=make_merchant().client, limits=Limits(per_day=Decimal(5)))
    booking = BookingApproval.objects.latest("pk")
    approve(booking=booking, actor=person)
    make_approval(booking.wallet.account)
    report = choose_report(user=person, kind="orders", every=Frequency.DAY)
    SentReport.objects.create(report=report, first_day=timezone.now().date())
    ask_or_agree(what="a change", about=None, actor=person)
    count_booking(user=person, kind=EntryKind.DEPOSIT, currency="USD", amount=Decimal(5))
    make_close(booking.wallet.account, timezone.now().date())
    root = SignedRoot.objects.create(number=1, signed_at=timezone.now(), wallets=1)
    wallet = Wallet.objects.all()[0]
    RootLeaf.objects.create(root=root, wallet=wallet, last_entry=1)
    complaint = make_complaint()
    replace_code_of_case(case=complaint.open(), version=1, actor=person)
    complaint.open(None)
    make_proof(make_merchant())
    make_companies(person)
    execute("SET CONSTRAINTS ALL IMMEDIATE")  # nothing waits for the end of the transaction


def make_files(person: User) -> None:
    FilePart.objects.create(upload=uuid4(), number=0, size=1, sealed=b"x", created_by=person)
    make_prepared_file(person)
    account = make_account()
    key = BookKey.objects.create(account=account, prefix="0" * 12, digest="", form=uuid4())
    PreparedFile.objects.create(key=key, account=account, sealed=b"x")


def columns_of(model: type[Model]) -> list[Any]:
    return list(model._meta.local_concrete_fields)


def counts_of(model: type[Model]) -> list[str]:
    """The columns whose numbers are at least 0."""
    kind = PositiveIntegerRelDbTypeMixin
    return [field.column for field in columns_of(model) if issubclass(type(field), kind)]


def execute(statement: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return int(cursor.rowcount)


def breaks(model: type[Model], statement: str, *before: str) -> str:
    """The name of the constraint that refuses the statement; empty if none does, or `no row`."""
    with transaction.atomic():
        execute(f"ALTER TABLE {model._meta.db_table} DISABLE TRIGGER USER")
        for each in before:
            execute(each)
        name = ""
        try:
            with transaction.atomic():
                name = "" if execute(statement) else "no row"
                execute("SET CONSTRAINTS ALL IMMEDIATE")
        except IntegrityError as refused:
            name = refused.__cause__.diag.constraint_name  # type: ignore[union-attr]
        transaction.set_rollback(True)
    return name


def first(table: str) -> str:
    return f"ctid = (SELECT min(ctid) FROM {table})"


def test_every_table_has_a_row_to_break() -> None:
    assert [model for model in MODELS if not model._default_manager.exists()] == []


def test_each_check_refuses_alone() -> None:
    found = {}
    for model in MODELS:
        table = model._meta.db_table
        broken = {
            each.name: BROKEN[each.name]
            for each in model._meta.constraints
            if isinstance(each, CheckConstraint)
        }
        broken |= {f"{table}_{column}_check": f"{column} = -1" for column in counts_of(model)}
        for name, change in broken.items():
            statement = f"UPDATE {table} SET {change} WHERE {first(table)}"
            found[name] = breaks(model, statement, drop_other_rules(table, name))
    assert found == {name: name for name in found}
    assert set(BROKEN) <= set(found)


def test_every_reference_leads_to_a_row() -> None:
    found = {}
    for model in MODELS:
        for field in columns_of(model):
            if field.remote_field and getattr(field, "db_constraint", False):
                value = "'none'" if "char" in str(field.db_type(connection)) else "-5"
                table = model._meta.db_table
                statement = f"UPDATE {table} SET {field.column} = {value} WHERE {first(table)}"
                found[f"{table}.{field.column}"] = breaks(model, statement, drop_other_rules(table))
    assert {name for name, refused in found.items() if not refused} == set()


def test_the_shelf_of_a_variation_is_of_its_product() -> None:
    other = "SELECT max(id) FROM catalogue_product WHERE id <> product_id"
    statement = f"UPDATE catalogue_shelf SET product_id = ({other}) WHERE variation_id IS NOT NULL"
    refused = breaks(Shelf, statement, drop_other_rules("catalogue_shelf"))
    assert refused == "catalogue_shelf_variation_of_product"


def test_what_is_unique_is_there_once() -> None:
    found = {}
    indexes = unique_indexes()
    for model, declared in uniques():
        table = model._meta.db_table
        name, rows = indexes.get((table, declared), (declared, "true"))
        key: str = model._meta.pk.attname
        quoted = connection.ops.quote_name
        others = [quoted(each.column) for each in columns_of(model) if not each.primary_key]
        new = "'none'" if "char" in str(model._meta.pk.db_type(connection)) else "-5"
        copy = (
            f"INSERT INTO {table} ({', '.join([key, *others])})"
            f" SELECT {', '.join([new, *others])} FROM {table} WHERE {rows} LIMIT 1"
        )
        found[name] = breaks(model, copy, drop_other_rules(table, name))
    assert found == {name: name for name in found}


def uniques() -> Iterator[tuple[type[Model], str]]:
    """Each model with what is unique in it: the name of a constraint or of a column.

    Left out are constraints with the primary key: a copied row has another one.
    """
    for model in MODELS:
        for field in columns_of(model):
            if field.unique and not field.primary_key:
                yield model, field.column
        for each in model._meta.constraints:
            if isinstance(each, UniqueConstraint) and model._meta.pk.name not in each.fields:
                yield model, each.name


def unique_indexes() -> dict[tuple[str, str], tuple[str, str]]:
    """The name of each unique index, and the condition of the rows that cannot be there twice, by
    its table and what `uniques` calls it."""
    with connection.cursor() as cursor:
        cursor.execute("""
            SELECT indrelid::regclass::text, attname, indexrelid::regclass::text,
                   concat_ws(' AND ', pg_get_expr(indpred, indrelid), (
                       SELECT string_agg(pg_get_indexdef(indexrelid, n, true) || ' IS NOT NULL',
                                         ' AND ')
                         FROM generate_series(1, indnkeyatts) AS n WHERE NOT indnullsnotdistinct))
              FROM pg_index
              LEFT JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0]
                                    AND indnkeyatts = 1 AND indpred IS NULL
             WHERE indisunique AND indrelid IN (SELECT oid FROM pg_class
                                                 WHERE relnamespace = 'public'::regnamespace)""")
        found = {}
        for table, column, name, rows in cursor.fetchall():
            found[table, name] = found[table, column] = name, rows or "true"
        return found


def drop_other_rules(table: str, kept: str = "") -> str:
    """Drops every rule of a table but its key, its references and the rule that is kept."""
    return f"""
        DO $$ DECLARE other record; BEGIN
            FOR other IN SELECT conname FROM pg_constraint
                          WHERE conrelid = '{table}'::regclass AND contype IN ('c', 'u')
                            AND conname <> '{kept}' LOOP
                EXECUTE format('ALTER TABLE {table} DROP CONSTRAINT %I CASCADE', other.conname);
            END LOOP;
            FOR other IN SELECT indexrelid::regclass AS name FROM pg_index
                          WHERE indrelid = '{table}'::regclass AND indisunique
                            AND NOT indisprimary AND indexrelid::regclass::text <> '{kept}' LOOP
                EXECUTE format('DROP INDEX %s', other.name);
            END LOOP;
        END $$"""

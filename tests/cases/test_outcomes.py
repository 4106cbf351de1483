"""A case ends once: rejected, replaced by a code at no price, or credited within what was paid."""

import json
from decimal import Decimal
from typing import Any

import pytest
from django.db import IntegrityError, ProgrammingError, transaction

from audit.models import AuditAction, AuditEntry
from cases import services
from cases.models import Case, CaseFile, CaseState
from cases.selectors import left_to_credit
from cases.services import (
    answer_case,
    credit_case,
    decline_replacement,
    open_case,
    propose_replacement,
    reject_case,
    replace_code_of_case,
)
from catalogue.models import VoucherCode
from core.backoffice.staff_roles import StaffRole
from core.inputs import InputProblem
from figures.margin_counting import count_margins
from figures.models import DailyMargin
from merchants.money.statement import write_json
from operators.upkeep.reconcile import reconcile
from orders.models import Order
from orders.remedies import replacements
from orders.remedies.bookings import approve
from orders.remedies.credits import credit_order
from orders.spending_limits import Limits, set_spending_limits
from tests.cases.complaints import PNG, Complaint, make_complaint
from tests.concurrency.racing import execute
from tests.factories import buy_topup, make_batch, make_merchant, new_booking_reference, own_shelf
from tests.merchants.people import browser_of, make_member
from tests.operators.back_office import list_url, signed_in, staff_with, url
from topups.models import Channel
from wallets.approvals import ask_for_approval, expire_approvals, reject_booking
from wallets.models import BookingApproval, BookingLimit, EntryKind, LedgerEntry, Wallet
from wallets.services import BadBooking, deposit

pytestmark = pytest.mark.django_db(transaction=True)


def balance(complaint: Complaint) -> Decimal:
    return Wallet.objects.get(account=complaint.merchant.account).balance


def credit(case: Case, amount: str, *, actor: Any = None, may_book: bool = True) -> Any:
    case.refresh_from_db()
    return credit_case(
        case=case,
        version=case.version,
        actor=actor or staff_with(StaffRole.FINANCE),
        amount=Decimal(amount),
        note="Sorry",
        may_book=may_book,
    )


def test_the_ledger_shows_the_entry_of_a_replacement() -> None:
    complaint = make_complaint()
    finance = staff_with(StaffRole.FINANCE)
    order = replace_code_of_case(case=complaint.open(), version=1, actor=finance)
    entry = LedgerEntry.objects.get(order_reference=order.reference)
    browser = signed_in(finance)

    for page in (list_url(LedgerEntry), url(entry)):
        assert "Replacement" in browser.get(page).content.decode()


def test_a_bad_code_is_replaced_by_an_order_that_costs_nothing() -> None:
    complaint = make_complaint()
    finance, case = staff_with(StaffRole.FINANCE), complaint.open()
    before = balance(complaint)

    order = replace_code_of_case(case=case, version=1, actor=finance)

    case.refresh_from_db()
    assert (case.state, case.decided_by, case.waits_since) == ("replaced", finance, None)
    assert case.closed_at
    assert balance(complaint) == before
    assert own_shelf(complaint.product).available_stock == 1
    listed = complaint.merchant.get("/orders").json()["data"]
    assert listed["pagination"]["total"] == 2
    read = complaint.merchant.get(f"/orders/{order.reference}").json()["data"]
    assert read == listed["items"][0]
    member = make_member(complaint.merchant.account)
    page = browser_of(member).get("/merchant/orders/").content.decode()
    assert page.count(">Replacement</span>") == 1
    entries = LedgerEntry.objects.filter(order_reference=order.reference)
    statement = b"".join(write_json(entries, account=complaint.merchant.account))
    (line,) = json.loads(statement)["entries"]
    assert (line["kind"], line["amount"], line["idempotency_key"]) == ("replacement", 0, None)
    (code,) = read.pop("codes")
    assert code["code"]
    assert (
        code
        not in complaint.merchant.get(f"/orders/{complaint.order.reference}").json()["data"][
            "codes"
        ]
    )
    assert read == {
        "reference": order.reference,
        "status": "completed",
        "product_id": complaint.product.pk,
        "variation_id": None,
        "merchant_reference": None,
        "quantity": 1,
        "units": 1,
        "units_per_sale": 1,
        "unit_price": 0,
        "total_price": 0,
        "currency": "USD",
        "created_at": read["created_at"],
    }
    entry = LedgerEntry.objects.get(order_reference=order.reference)
    assert (entry.kind, entry.amount, entry.actor) == (
        "replacement",
        Decimal(0),
        f"admin:{finance}",
    )
    assert not entry.can_be_reversed
    assert reconcile()["findings"] == []
    assert reconcile(decrypt=True)["findings"] == []


def test_the_cost_of_a_replacement_counts_in_the_margins() -> None:
    complaint = make_complaint(stock=0)
    batch = make_batch(own_shelf(complaint.product), 1)
    replace_code_of_case(case=complaint.open(), version=1, actor=staff_with(StaffRole.FINANCE))

    count_margins()

    counted = DailyMargin.objects.get(batch=batch)
    assert (counted.quantity, counted.sold) == (1, Decimal(0))
    assert reconcile()["findings"] == []


def test_a_replacement_needs_a_code_in_stock() -> None:
    complaint = make_complaint(stock=0)
    case = complaint.open()

    with pytest.raises(InputProblem, match="No code of this shelf is in stock"):
        replace_code_of_case(case=case, version=1, actor=staff_with(StaffRole.FINANCE))

    case.refresh_from_db()
    assert (case.state, case.version) == ("open", 1)
    assert Order.objects.filter(client=complaint.merchant.client).count() == 1


def test_a_replacement_is_within_every_spending_limit() -> None:
    complaint = make_complaint()
    client = complaint.merchant.client
    set_spending_limits(client=client, limits=Limits(Decimal("0.01"), None))
    assert replace_code_of_case(
        case=complaint.open(), version=1, actor=staff_with(StaffRole.FINANCE)
    )
    assert reconcile()["findings"] == []


def test_a_replacement_that_does_not_work_is_credited_to_the_order_that_was_paid() -> None:
    complaint = make_complaint(quantity=1)
    first = replace_code_of_case(
        case=complaint.open(), version=1, actor=staff_with(StaffRole.FINANCE)
    )
    code = VoucherCode.objects.get(order_id=first.pk)
    case = open_case(order=first, code=code, actor=complaint.member, text="Used as well.")

    credit(case, "10")

    assert balance(complaint) == 100
    entry = LedgerEntry.objects.get(kind=EntryKind.CREDIT)
    assert entry.order_reference == complaint.order.reference
    assert reconcile()["findings"] == []
    with pytest.raises(BadBooking, match="no order with this"):
        credit_order(
            reference=first.reference,
            amount=Decimal(1),
            note="x",
            actor="admin:x",
            channel=Channel.ADMIN,
            booking_reference=new_booking_reference(),
        )


@pytest.mark.parametrize("may_book", [True, False])
def test_staff_are_offered_the_credit_of_a_replacement_that_does_not_work(may_book: bool) -> None:
    complaint, finance = make_complaint(), staff_with(StaffRole.FINANCE)
    first = replace_code_of_case(case=complaint.open(), version=1, actor=finance)
    credit(complaint.open(1), "4")
    code = VoucherCode.objects.get(order_id=first.pk)
    case = open_case(order=first, code=code, actor=complaint.member, text="Used as well.")

    assert left_to_credit(complaint.order) == 6
    assert left_to_credit(case.paid_order, case) == 16
    page = signed_in(finance).get(url(case)).content.decode()
    assert url(case, "credit") in page
    assert "16.00 USD is left to credit" in " ".join(page.split())
    with pytest.raises((InputProblem, BadBooking)):
        credit(case, "16.01", may_book=may_book)
    case.refresh_from_db()
    credit(case, "16", may_book=may_book)


def test_credits_of_cases_are_at_most_what_was_paid() -> None:
    complaint = make_complaint()
    first, second = complaint.open(0), complaint.open(1)

    credit(first, "15.00")
    with pytest.raises(BadBooking, match="more than it cost"):
        credit(second, "5.01")
    second.refresh_from_db()
    assert second.state == "open"
    credit(second, "5.00")

    first.refresh_from_db()
    assert (first.state, balance(complaint)) == ("credited", Decimal(100))
    assert reconcile()["findings"] == []


def test_a_code_of_an_order_that_was_paid_back_is_not_replaced() -> None:
    complaint = make_complaint()
    credit(complaint.open(None), "10.01")
    case = complaint.open()

    with pytest.raises(InputProblem, match="Nothing is left to give"):
        replace_code_of_case(case=case, version=1, actor=staff_with(StaffRole.FINANCE))

    case.refresh_from_db()
    assert (case.state, own_shelf(complaint.product).available_stock) == ("open", 2)
    assert reconcile()["findings"] == []


def test_what_was_replaced_is_not_credited_as_well() -> None:
    complaint, finance = make_complaint(), staff_with(StaffRole.FINANCE)
    replacement = replace_code_of_case(case=complaint.open(), version=1, actor=finance)

    whole = complaint.open(None)
    with pytest.raises(BadBooking, match="more than it cost"):
        credit(whole, "10.01")
    credit(whole, "10")

    assert balance(complaint) == 90
    code = VoucherCode.objects.get(order_id=replacement.pk)
    case = open_case(order=replacement, code=code, actor=complaint.member, text="Used as well.")
    replace_code_of_case(case=case, version=1, actor=finance)  # the first one counts no more
    assert reconcile()["findings"] == []


def test_a_replacement_counts_towards_the_limit_of_its_maker() -> None:
    complaint, finance = make_complaint(), staff_with(StaffRole.FINANCE)
    group = finance.groups.get()
    BookingLimit.objects.create(group=group, kind=EntryKind.CREDIT, amount=10, per_day=15)
    first, second = complaint.open(0), complaint.open(1)

    replace_code_of_case(case=first, version=1, actor=finance)
    with pytest.raises(InputProblem, match="above your limit"):
        replace_code_of_case(case=second, version=1, actor=finance)

    replace_code_of_case(case=second, version=1, actor=staff_with(StaffRole.FINANCE))
    assert Order.objects.exclude(case_id=None).count() == 2


def test_only_the_credit_of_a_case_reopens_it() -> None:
    complaint = make_complaint(quantity=1)
    support, case = staff_with(StaffRole.SUPPORT), complaint.open()
    credit(case, "10", actor=support, may_book=False)
    other = BookingApproval(
        wallet_id=complaint.merchant.account.pk,
        kind=EntryKind.DEPOSIT,
        amount=Decimal(5),
        booking_reference=f"credit-of-case:0{case.pk}",
        note="x",
        asked_by=support,
    )

    assert reject_booking(booking=ask_for_approval(booking=other), actor=support, note="")

    case.refresh_from_db()
    assert case.state == "crediting"


def test_a_credit_that_waits_has_a_note_that_can_be_shown() -> None:
    case = make_complaint(quantity=1).open()
    with pytest.raises(InputProblem):
        credit_case(
            case=case,
            version=1,
            actor=staff_with(StaffRole.SUPPORT),
            amount=Decimal(1),
            note="left\u200eright",
            may_book=False,
        )
    assert not BookingApproval.objects.exists()


def test_the_files_of_an_account_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    complaint = make_complaint()
    monkeypatch.setattr(services, "MAX_STORED", 2 * len(PNG))
    case = complaint.open()
    files = [("a.png", PNG), ("b.png", PNG)]
    answer_case(case=case, version=1, actor=complaint.member, text="See.", files=files)

    with pytest.raises(InputProblem, match="files of this account"):
        answer_case(case=case, version=2, actor=complaint.member, text="See.", files=files[:1])


def test_a_credit_above_the_limit_closes_the_case_when_another_person_approves() -> None:
    complaint = make_complaint(quantity=1)
    support, case = staff_with(StaffRole.SUPPORT), complaint.open()

    waiting = credit(case, "10", actor=support, may_book=False)

    case.refresh_from_db()
    assert isinstance(waiting, BookingApproval)
    assert (case.state, balance(complaint)) == ("crediting", Decimal(90))
    with pytest.raises(InputProblem, match="changed meanwhile"):
        replace_code_of_case(case=case, version=case.version, actor=staff_with(StaffRole.FINANCE))
    with pytest.raises(InputProblem, match="must approve"):
        approve(booking=waiting, actor=support)
    finance = staff_with(StaffRole.FINANCE)
    assert approve(booking=waiting, actor=finance)
    case.refresh_from_db()
    assert (case.state, case.decided_by, balance(complaint)) == ("credited", support, Decimal(100))
    assert f"decided by {finance}" in signed_in(finance).get(url(case)).content.decode()
    assert case.email_due
    assert reconcile()["findings"] == []


def test_nobody_proposes_more_than_is_left() -> None:
    case = make_complaint(quantity=1).open()
    for amount in ("0", "-1", "10.01"):
        with pytest.raises(InputProblem, match="Between 0 and"):
            credit(case, amount, may_book=False)
    case.refresh_from_db()
    assert case.state == "open"


@pytest.mark.parametrize("end", ["rejected", "withdrawn", "expired"])
def test_a_credit_that_is_not_approved_leaves_the_case_open(end: str) -> None:
    complaint = make_complaint(quantity=1)
    support, case = staff_with(StaffRole.SUPPORT), complaint.open()
    waiting = credit(case, "10", actor=support, may_book=False)

    if end == "expired":
        execute("SET session_replication_role = replica")
        execute("UPDATE wallets_bookingapproval SET expires_at = now() - interval '1 second'")
        execute("SET session_replication_role = origin")
        assert expire_approvals() == 1
    else:
        other = support if end == "withdrawn" else staff_with(StaffRole.FINANCE)
        assert reject_booking(booking=waiting, actor=other, note="")

    case.refresh_from_db()
    assert (case.state, case.decided_by) == ("open", None)
    assert case.waits_since
    credit(case, "4.00")
    case.refresh_from_db()
    assert (case.state, balance(complaint)) == ("credited", Decimal(94))
    assert reconcile()["findings"] == []


def test_a_topup_is_credited() -> None:
    merchant = make_merchant()
    order = Order.objects.get(reference=buy_topup(merchant))
    member = make_member(merchant.account).user
    case = open_case(order=order, code=None, actor=member, text="Nothing arrived.")
    with pytest.raises(InputProblem, match="Only a case about one code"):
        replace_code_of_case(case=case, version=1, actor=member)

    credit(case, "1.00")

    case.refresh_from_db()
    assert case.state == "credited"
    again = open_case(order=order, code=None, actor=member, text="Still nothing.")
    assert again.state == CaseState.OPEN
    assert reconcile()["findings"] == []


def test_a_rejected_code_may_have_a_second_case_and_a_replaced_one_may_not() -> None:
    complaint, staff = make_complaint(), staff_with(StaffRole.FINANCE)
    case = complaint.open()
    with pytest.raises(InputProblem, match="There is a case about this code already"):
        complaint.open()

    reject_case(case=case, version=1, actor=staff, text="It was redeemed by your customer.")
    replace_code_of_case(case=complaint.open(), version=1, actor=staff)

    with pytest.raises(InputProblem, match="There is a case about this code already"):
        complaint.open()
    assert complaint.open(None).code is None
    with pytest.raises(InputProblem, match="about this order already"):
        complaint.open(None)


def test_a_form_with_an_old_version_does_nothing() -> None:
    complaint, staff = make_complaint(), staff_with(StaffRole.SUPPORT)
    case = complaint.open()
    answer_case(case=case, version=1, actor=complaint.member, text="One more thing.")

    for decide in (
        lambda: reject_case(case=case, version=1, actor=staff, text="No."),
        lambda: answer_case(case=case, version=1, actor=staff, text="Hello."),
        lambda: propose_replacement(case=case, version=1, actor=staff),
        lambda: replace_code_of_case(case=case, version=1, actor=staff),
    ):
        with pytest.raises(InputProblem, match="changed meanwhile"):
            decide()
    assert case.messages.count() == 2


def test_a_case_waits_for_staff_until_they_answer() -> None:
    complaint, staff = make_complaint(), staff_with(StaffRole.SUPPORT)
    case = complaint.open()
    began = case.waits_since

    answer_case(case=case, version=1, actor=complaint.member, text="Hello?")
    case.refresh_from_db()
    assert (case.waits_since, case.email_due) == (began, False)
    answer_case(case=case, version=2, actor=staff, text="We are asking the supplier.")
    case.refresh_from_db()
    assert (case.waits_since, case.email_due) == (None, True)
    propose_replacement(case=case, version=3, actor=staff)
    case.refresh_from_db()
    assert case.waits_since
    assert case.replacement_proposed_by == staff


def test_a_declined_proposal_leaves_the_case_open_and_can_be_made_again() -> None:
    complaint, staff = make_complaint(), staff_with(StaffRole.FINANCE)
    case = complaint.open()
    with pytest.raises(InputProblem, match="Nobody proposes a replacement"):
        decline_replacement(case=case, version=1, actor=staff)
    propose_replacement(case=case, version=1, actor=staff_with(StaffRole.SUPPORT))
    case.refresh_from_db()
    with pytest.raises(InputProblem, match="changed meanwhile"):
        decline_replacement(case=case, version=1, actor=staff)

    decline_replacement(case=case, version=2, actor=staff, note="Ask for a photo")

    case.refresh_from_db()
    assert (case.state, case.replacement_proposed_by) == (CaseState.OPEN, None)
    assert case.waits_since
    entry = AuditEntry.objects.get(action=AuditAction.REPLACEMENT_DECLINED)
    assert (entry.actor, entry.note) == (staff, "Ask for a photo")
    propose_replacement(case=case, version=3, actor=staff)
    assert reconcile()["findings"] == []


def test_files_are_checked_and_sealed() -> None:
    complaint = make_complaint()
    case = open_case(
        order=complaint.order,
        code=None,
        actor=complaint.member,
        text="See the picture.",
        files=[("C:\\pictures\\code.png", PNG)],
    )
    stored = CaseFile.objects.get(message__case=case)
    assert (stored.name, stored.content_type, stored.size) == ("code.png", "image/png", len(PNG))
    assert PNG not in bytes(stored.sealed)
    assert stored.content() == PNG

    for name, content in (
        ("code.html", b"<script>"),
        ("code.png", b"<script>"),
        ("code.html", PNG),
        ("big.png", PNG + bytes(5_000_000)),
        ("", PNG),
        ("a\nb.png", PNG),
    ):
        with pytest.raises(InputProblem):
            answer_case(
                case=case,
                version=1,
                actor=complaint.member,
                text="Another.",
                files=[(name, content)],
            )
    with pytest.raises(InputProblem, match="at most 5 files"):
        answer_case(
            case=case, version=1, actor=complaint.member, text="x", files=[("a.png", PNG)] * 6
        )
    assert case.messages.count() == 1


@pytest.mark.parametrize("text", ["", " \n ", "\u200b", "x" * 4001])
def test_a_message_has_a_text_that_can_be_read(text: str) -> None:
    with pytest.raises(InputProblem):
        make_complaint().open(text=text)
    assert not Case.objects.exists()


def test_an_account_has_a_limit_of_open_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    complaint = make_complaint()
    monkeypatch.setattr("cases.services.MAX_OPEN", 1)
    complaint.open(0)
    with pytest.raises(InputProblem, match="cases of this account are open"):
        complaint.open(1)
    monkeypatch.setattr("cases.services.MAX_MESSAGES", 1)
    with pytest.raises(InputProblem, match="at most 1 messages"):
        answer_case(case=Case.objects.get(), version=1, actor=complaint.member, text="More.")


def test_a_merchant_with_many_messages_keeps_no_case_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cases.services.MAX_MESSAGES", 1)
    case, staff = make_complaint().open(), staff_with(StaffRole.SUPPORT)
    answer_case(case=case, version=1, actor=staff, text="Please stop.")
    reject_case(case=case, version=2, actor=staff, text="It was redeemed.")
    case.refresh_from_db()
    assert case.state == CaseState.REJECTED


def test_the_audit_trail_names_the_order_and_has_no_text() -> None:
    complaint = make_complaint()
    finance, case = staff_with(StaffRole.FINANCE), complaint.open(text="hidden words")
    replace_code_of_case(case=case, version=1, actor=finance)

    entries = AuditEntry.objects.filter(object_type="cases.case", object_id=str(case.pk))
    assert list(entries.order_by("pk").values_list("action", "actor", "reference")) == [
        (AuditAction.CASE_OPENED, complaint.member.pk, complaint.order.reference),
        (AuditAction.CASE_REPLACED, finance.pk, complaint.order.reference),
    ]
    assert "hidden" not in str([vars(entry) for entry in entries])


def test_the_purchase_log_has_a_line_of_a_replacement(monkeypatch: pytest.MonkeyPatch) -> None:
    complaint = make_complaint()
    lines: list[dict[str, Any]] = []
    monkeypatch.setattr(replacements, "log_purchase", lambda **values: lines.append(values))

    order = replace_code_of_case(
        case=complaint.open(), version=1, actor=staff_with(StaffRole.FINANCE)
    )

    (line,) = lines
    code = VoucherCode.objects.get(order_id=order.pk)
    assert (line["reference"], line["price"]) == (order.reference, Decimal(0))
    assert list(map(bytes, line["digests"])) == [bytes(code.digest)]


# --- The database --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE cases_case SET state = 'credited', closed_at = now(), waits_since = NULL,"
        " decided_by_id = opened_by_id",
        "UPDATE cases_case SET state = 'replaced', closed_at = now(), waits_since = NULL,"
        " decided_by_id = opened_by_id",
        "UPDATE cases_case SET order_id = order_id + 1",
        "UPDATE cases_case SET code_id = NULL",
        "DELETE FROM cases_case",
        "UPDATE cases_casemessage SET text = 'x'",
        "DELETE FROM cases_casemessage",
    ],
)
def test_the_database_keeps_cases(statement: str) -> None:
    make_complaint().open()
    with pytest.raises(ProgrammingError, match="kept"), transaction.atomic():
        execute(statement)


def test_a_closed_case_stays_closed() -> None:
    case, staff = make_complaint().open(), staff_with(StaffRole.SUPPORT)
    reject_case(case=case, version=1, actor=staff, text="No.")
    with pytest.raises(ProgrammingError, match="are kept"), transaction.atomic():
        Case.objects.update(state=CaseState.OPEN, closed_at=None)
    with pytest.raises(InputProblem, match="changed"):
        answer_case(case=case, version=2, actor=staff, text="Once more.")


def test_a_case_is_about_an_order_of_its_account() -> None:
    mine, theirs = make_complaint(), make_complaint()
    row = {
        "account": mine.merchant.account,
        "order": mine.order,
        "code": mine.codes[0],
        "paid_order": mine.order,
        "opened_by": mine.member,
    }
    for wrong in (
        {"account": theirs.merchant.account},
        {"code": theirs.codes[0]},
        {"paid_order": theirs.order},
        {"order": theirs.order},
    ):
        with pytest.raises(IntegrityError, match="not about an order"), transaction.atomic():
            Case.objects.create(**{**row, **wrong})
    assert Case.objects.create(**row)


REPLACEMENT = (
    "INSERT INTO wallets_ledgerentry (wallet_id, kind, counterpart, amount, balance_after, actor,"
    " order_reference, booking_reference) SELECT account_id, %s, 'sales', %s, 0, 'test', %s, %s"
    " FROM cases_case"
)


def test_no_entry_gives_what_no_case_decided() -> None:
    complaint = make_complaint()
    case = complaint.open()
    reference = complaint.order.reference
    for kind, amount, order, booking in (
        ("replacement", 0, reference, f"replacement-of-case:{case.pk}"),  # nobody decided
        ("credit", 1, reference, f"credit-of-case:{case.pk}"),
        ("credit", 1, reference, f"Credit of case {case.pk}"),
        ("credit", 1, reference, "credit-of-case:"),
    ):
        with pytest.raises(Exception, match="not_an_outcome"), transaction.atomic():
            execute(REPLACEMENT, kind, amount, order, booking)
    with pytest.raises(BadBooking, match="outcomes of cases"):
        deposit(
            account=complaint.merchant.account,
            amount=Decimal(1),
            actor="admin:x",
            booking_reference=f"CREDIT OF CASE {case.pk}",
        )
    for amount, booking in ((1, f"replacement-of-case:{case.pk}"), (0, "another")):
        with pytest.raises(IntegrityError, match="agrees_with_its_kind"), transaction.atomic():
            execute(REPLACEMENT, "replacement", amount, reference, booking)


ORDER = (
    "INSERT INTO orders_order (reference, client_id, number, shelf_id, quantity, units_per_sale,"
    " unit_price, total_price, currency, codes_mac, case_id)"
    " SELECT 'X' || number, client_id, number + 10, shelf_id, 1, 1, {price}, {price}, currency,"
    " codes_mac, {case} FROM orders_order WHERE shelf_id IS NOT NULL ORDER BY id DESC LIMIT 1"
)


def test_only_an_order_of_a_case_costs_nothing() -> None:
    case = make_complaint().open()
    for price, named in ((0, "NULL"), (1, case.pk)):
        with pytest.raises(IntegrityError, match="paid_or_replaces"), transaction.atomic():
            execute(ORDER.format(price=price, case=named))
    with pytest.raises(IntegrityError, match="orders_order_case_fk"), transaction.atomic():
        execute(ORDER.format(price=0, case=case.pk + 1) + "; SET CONSTRAINTS ALL IMMEDIATE")
    execute(ORDER.format(price=0, case=case.pk))
    with pytest.raises(IntegrityError, match="once_per_case"), transaction.atomic():
        execute(ORDER.format(price=0, case=case.pk))

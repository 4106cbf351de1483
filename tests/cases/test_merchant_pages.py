"""Members open cases on the page of an order, read the answers, and receive an email about each."""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal

import pytest
from django.core import mail
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from cases.models import Case
from cases.selectors import cases_of, conversation_of
from cases.services import (
    answer_case,
    credit_case,
    open_case,
    reject_case,
    replace_code_of_case,
)
from catalogue.imports.code_import import add_codes
from catalogue.stock.codes import Code, open_code
from core.backoffice.staff_roles import StaffRole
from core.inputs import InputProblem
from merchants.email.case_notices import sweep_cases
from merchants.email.sending import sweep_emails
from merchants.models import Email, Role
from merchants.people import access
from orders.models import Order
from orders.remedies.bookings import approve
from tests.cases.complaints import PNG, make_complaint
from tests.factories import buy_topup, make_merchant, make_product, own_shelf
from tests.merchants.people import browser_of, make_member
from tests.operators.back_office import staff_with, text_of
from wallets.models import BookingApproval

pytestmark = pytest.mark.django_db


def test_a_viewer_opens_a_case_and_answers_in_it() -> None:
    complaint = make_complaint()
    viewer = make_member(complaint.merchant.account, Role.VIEWER)
    browser = browser_of(viewer)
    page = f"/merchant/orders/{complaint.order.reference}/"
    assert f"{page}case/" in text_of(browser.get(page))
    assert "Code 2 of 2" in text_of(browser.get(f"{page}case/"))

    answer = browser.post(
        f"{page}case/",
        {
            "code": complaint.codes[0].pk,
            "text": "It was used before.",
            "attachments": SimpleUploadedFile("shop.png", PNG),
        },
        follow=True,
    )

    case = Case.objects.get()
    assert (case.opened_by, case.code) == (viewer.user, complaint.codes[0])
    shown = text_of(answer)
    assert "code 1 of 2" in shown
    assert "It was used before." in shown
    file = case.messages.get().files.get()
    download = browser.get(f"/merchant/cases/{case.pk}/files/{file.pk}/")
    assert (download.content, download["X-Content-Type-Options"]) == (PNG, "nosniff")
    assert download["Content-Disposition"].startswith("attachment")
    browser.post(f"/merchant/cases/{case.pk}/", {"version": "1", "text": "And the other one?"})
    assert case.messages.count() == 2
    assert str(case) in text_of(browser.get("/merchant/cases/"))
    assert str(case) in text_of(browser.get(page))


def test_the_list_names_open_cases_and_whose_turn_it_is() -> None:
    complaint = make_complaint()
    case, closed = complaint.open(0), complaint.open(1)
    staff, browser = staff_with(StaffRole.SUPPORT), browser_of(complaint.member)
    reject_case(case=closed, version=1, actor=staff, text="It works.")

    page = text_of(browser.get("/merchant/cases/?state=open"))
    assert "Open (1)" in page
    assert "our staff look at it" in page
    assert str(closed) not in page
    answer_case(case=case, version=1, actor=staff, text="Which shop was it?")
    page = text_of(browser.get("/merchant/cases/"))
    assert "our staff answered" in page
    assert str(closed) in page


def test_a_large_file_is_stored() -> None:
    complaint = make_complaint()
    case, browser = complaint.open(), browser_of(complaint.member)
    large = PNG + bytes(3_000_000)

    browser.post(
        f"/merchant/cases/{case.pk}/",
        {"version": "1", "text": "Look.", "attachments": SimpleUploadedFile("shop.png", large)},
    )

    assert case.messages.latest("pk").files.get().size == len(large)


def test_nothing_clears_files() -> None:
    complaint = make_complaint()
    case, browser = complaint.open(), browser_of(complaint.member)

    answer = browser.post(
        f"/merchant/cases/{case.pk}/",
        {
            "version": "1",
            "text": "Look.",
            "attachments-clear": "on",
            "attachments": SimpleUploadedFile("shop.png", PNG),
        },
    )

    assert answer.status_code == 302


def test_a_form_that_is_sent_twice_writes_once() -> None:
    complaint = make_complaint()
    case, browser = complaint.open(), browser_of(complaint.member)
    form = {"version": "1", "text": "Hello?"}
    browser.post(f"/merchant/cases/{case.pk}/", form)

    again = text_of(browser.post(f"/merchant/cases/{case.pk}/", form))

    assert "changed meanwhile" in again
    assert case.messages.count() == 2


def test_a_message_that_crosses_an_answer_can_be_sent_again() -> None:
    complaint = make_complaint()
    case, browser = complaint.open(), browser_of(complaint.member)
    answer_case(case=case, version=1, actor=staff_with(StaffRole.SUPPORT), text="Which shop?")

    page = text_of(browser.post(f"/merchant/cases/{case.pk}/", {"version": "1", "text": "Hello?"}))

    assert "changed meanwhile" in page
    assert "Which shop?" in page
    assert "\nHello?</textarea>" in page
    assert 'name="version" value="2"' in page


def test_a_message_to_a_case_that_was_closed_meanwhile_is_shown_to_be_copied() -> None:
    complaint = make_complaint()
    case, browser = complaint.open(), browser_of(complaint.member)
    reject_case(case=case, version=1, actor=staff_with(StaffRole.SUPPORT), text="It works.")
    address = f"/merchant/cases/{case.pk}/"

    page = text_of(browser.post(address, {"version": "1", "text": "Typed & unsent."}))

    assert "closed meanwhile" in page
    assert "<p>Typed &amp; unsent.</p>" in page
    assert case.messages.count() == 2
    assert "closed meanwhile" not in text_of(browser.get(address))


def test_members_reach_only_cases_files_and_codes_of_their_account() -> None:
    complaint, other = make_complaint(), make_complaint()
    case = other.open()
    browser = browser_of(complaint.member)
    assert browser.get(f"/merchant/cases/{case.pk}/").status_code == 404
    assert str(case) not in text_of(browser.get("/merchant/cases/"))
    path = f"/merchant/orders/{other.order.reference}/case/"
    assert browser.post(path, {"code": "", "text": "x"}).status_code == 404
    own = f"/merchant/orders/{complaint.order.reference}/case/"
    browser.post(own, {"code": other.codes[1].pk, "text": "x"})
    assert Case.objects.count() == 1


def test_the_merchant_sees_a_replacement_everywhere() -> None:
    complaint = make_complaint()
    case, browser = complaint.open(), browser_of(complaint.member)
    order = replace_code_of_case(case=case, version=1, actor=staff_with(StaffRole.FINANCE))

    page = text_of(browser.get(f"/merchant/cases/{case.pk}/"))
    assert "Code replaced" in page
    assert order.reference in page
    assert "This case is closed" in page
    page = text_of(browser.get(f"/merchant/orders/{order.reference}/"))
    assert "Replaces a code of" in page
    assert complaint.order.reference in page
    german = browser_of(complaint.member)
    german.defaults["HTTP_ACCEPT_LANGUAGE"] = "de"
    page = text_of(german.get(f"/merchant/orders/{order.reference}/"))
    assert f">Fall {case.pk}</a>)" in page
    page = text_of(browser.get(f"/merchant/orders/{complaint.order.reference}/"))
    assert order.reference in page
    assert order.reference in text_of(browser.get("/merchant/orders/"))
    statement = text_of(browser.get("/merchant/wallet/statement.csv"))
    (line,) = [one for one in statement.splitlines() if order.reference in one]
    assert ",replacement,0.00," in line
    assert "Replacement" in text_of(browser.get("/merchant/wallet/?kind=replacement"))
    exported = b"".join(browser.get("/merchant/orders/orders.csv")).decode()
    (line,) = [one for one in exported.splitlines() if order.reference in one]
    assert ",0.00,0.00,USD," in line


def test_the_merchant_sees_a_credit_and_its_reason() -> None:
    complaint = make_complaint()
    case = complaint.open()
    support = staff_with(StaffRole.SUPPORT)
    credit_case(
        case=case,
        version=1,
        actor=support,
        amount=Decimal(4),
        note="Our mistake",
        may_book=False,
    )
    browser = browser_of(complaint.member)
    assert "Waits" not in text_of(browser.get(f"/merchant/cases/{case.pk}/"))

    approve(booking=BookingApproval.objects.get(), actor=staff_with(StaffRole.FINANCE))

    page = text_of(browser.get(f"/merchant/cases/{case.pk}/"))
    assert "4.00 USD: Our mistake" in page
    assert "Our mistake" in text_of(browser.get(f"/merchant/orders/{complaint.order.reference}/"))


def test_an_answer_and_an_outcome_send_one_email_to_each_receiver() -> None:
    complaint = make_complaint()
    make_member(complaint.merchant.account, Role.DEVELOPER)
    opener = make_member(complaint.merchant.account, Role.VIEWER)
    complaint.member, owner = opener.user, complaint.member
    case = complaint.open(text="secret words")
    staff = staff_with(StaffRole.SUPPORT)
    assert sweep_cases() == 0

    answer_case(case=case, version=1, actor=staff, text="secret answer")
    assert (sweep_cases(), sweep_cases()) == (1, 0)
    sweep_emails()

    assert sorted(one.to[0] for one in mail.outbox) == sorted([owner.email, opener.user.email])
    assert mail.outbox[0].subject == f"Case {case.pk}: message from our staff"
    assert f"/merchant/cases/{case.pk}/" in mail.outbox[0].body
    reject_case(case=case, version=2, actor=staff, text="No.")
    sweep_cases()
    sweep_emails()
    assert mail.outbox[-1].subject == f"Case {case.pk}: Closed without credit"
    assert not any("secret" in one.body for one in mail.outbox)
    assert not Email.objects.filter(facts__icontains="secret").exists()


def test_the_file_reads_all_cases_at_once(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    complaint = make_complaint()
    complaint.open()
    topup = Order.objects.get(reference=buy_topup(complaint.merchant))
    open_case(order=topup, code=None, actor=complaint.member, text="It never came.")

    with django_assert_num_queries(1):
        goods = [case.order.goods for case in cases_of(complaint.merchant.account)]

    assert goods == [topup.goods, complaint.order.goods]


def test_the_file_counts_as_a_heavy_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "HEAVY_PAGES_PER_MINUTE", 1)
    browser = browser_of(make_complaint().member)

    found = [browser.get("/merchant/cases/cases.csv").status_code for _ in range(2)]

    assert found == [200, 429]


def test_a_case_is_shown_without_reading_its_files(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    complaint = make_complaint()
    case = complaint.open()
    files = [("a.png", PNG), ("b.png", PNG)]
    answer_case(case=case, version=1, actor=complaint.member, text="See.", files=files)

    with django_assert_num_queries(2) as queries:
        names = [file.name for one in conversation_of(case) for file in one.files.all()]

    assert names == ["a.png", "b.png"]
    assert not any("sealed" in query["sql"] for query in queries)


@pytest.mark.parametrize("spelling", [str, str.lower, lambda code: " ".join(code.replace("-", ""))])
def test_a_message_with_a_code_of_the_order_is_refused(spelling: Callable[[str], str]) -> None:
    complaint = make_complaint()
    case = complaint.open()
    code = complaint.codes[1]
    text = f"Not this one: {spelling(open_code(code.sealed, code.digest).code)}."

    page = f"/merchant/cases/{case.pk}/"
    answer = browser_of(complaint.member).post(page, {"version": 1, "text": text})
    assert "This message has a code of the order in it." in text_of(answer)
    with pytest.raises(InputProblem, match="code of the order"):
        answer_case(case=case, version=1, actor=staff_with(StaffRole.FINANCE), text=text)
    with pytest.raises(InputProblem, match="code of the order"):
        complaint.open(place=1, text=text)
    with pytest.raises(InputProblem, match="at most 5 files"):  # an answer here is no answer there
        answer_case(
            case=case,
            version=1,
            actor=complaint.member,
            text=text,
            files=[(f"{number}.png", PNG) for number in range(6)],
        )
    assert case.messages.count() == 1

    other = make_complaint().codes[0]
    foreign = open_code(other.sealed, other.digest).code
    answer_case(case=case, version=1, actor=complaint.member, text=foreign)


def test_a_message_with_a_pin_of_the_order_is_refused() -> None:
    merchant, product = make_merchant(), make_product(price="10.00")
    rows = [(1, Code("A-CODE", pin_code="9081-7263")), (2, Code("B-CODE", pin_code="1234"))]
    add_codes(shelf=own_shelf(product), rows=rows)
    bought = merchant.buy(product_id=product.pk, quantity=2).json()["data"]
    order, member = Order.objects.get(reference=bought["reference"]), make_member(merchant.account)

    with pytest.raises(InputProblem, match="code of the order"):
        open_case(order=order, code=None, actor=member.user, text="PIN 90817263 fails.")
    open_case(order=order, code=None, actor=member.user, text="Since 1234.")  # may be a year


def test_a_new_case_was_opened_just_now() -> None:
    complaint = make_complaint()
    page = f"/merchant/cases/{complaint.open().pk}/"
    assert "Opened just now" in text_of(browser_of(complaint.member).get(page))

    assert not Case(opened_at=timezone.now() - timedelta(minutes=5)).is_new

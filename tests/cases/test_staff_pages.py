"""Staff answer and decide cases in the back office, as far as their role allows."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from cases.models import Case
from core.backoffice.staff_roles import StaffRole
from orders.models import Order
from tests.cases.complaints import PNG, make_complaint
from tests.operators.back_office import browser_with, list_url, make_case, signed_in, text_of, url
from wallets.models import BookingApproval, EntryKind, LedgerEntry

pytestmark = pytest.mark.django_db


def test_support_opens_a_case_about_a_code() -> None:
    complaint, support = make_complaint(), browser_with(StaffRole.SUPPORT)
    assert "Open a case…" in text_of(support.get(url(complaint.order)))
    form = text_of(support.get(url(complaint.order, "open_case")))
    assert "Code 2 of 2" in form

    answer = support.post(
        url(complaint.order, "open_case"),
        {
            "code": complaint.codes[1].pk,
            "text": "The merchant phoned.",
            "attachments": [SimpleUploadedFile("one.png", PNG), SimpleUploadedFile("2.png", PNG)],
        },
        follow=True,
    )

    case = Case.objects.get()
    assert case.code == complaint.codes[1]
    page = text_of(answer)
    assert "code 2 of 2" in page
    assert "The merchant phoned." in page
    assert page.count(" download>") == 2
    assert str(case) in text_of(support.get(url(complaint.order)))
    assert "Code 2 of 2" not in text_of(support.get(url(complaint.order, "open_case")))
    other = make_complaint()
    support.post(
        url(other.order, "open_case"), {"code": complaint.codes[0].pk, "text": "A code of others."}
    )
    assert Case.objects.count() == 1


def test_a_case_about_an_order_of_one_code_is_about_the_code() -> None:
    complaint, support = make_complaint(quantity=1), browser_with(StaffRole.SUPPORT)
    assert "The whole order" not in text_of(support.get(url(complaint.order, "open_case")))
    complaint.open()
    assert "The whole order" in text_of(support.get(url(complaint.order, "open_case")))


def test_files_are_only_downloads() -> None:
    case = make_case(make_complaint().order.reference)
    file = case.messages.get().files.get()
    address = f"/admin/cases/case/{case.pk}/file/{file.pk}/"

    answer = browser_with(StaffRole.SUPPORT).get(address)

    assert answer.content == file.content()
    assert answer["Content-Disposition"].startswith("attachment")
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert "no-store" in answer["Cache-Control"]
    assert browser_with(StaffRole.STOCK_KEEPER).get(address).status_code == 403
    other = make_case(make_complaint().order.reference)
    wrong = address.replace(f"/{case.pk}/file", f"/{other.pk}/file")
    assert signed_in().get(wrong).status_code == 404


def test_each_role_is_offered_what_it_may_do() -> None:
    case = make_case(make_complaint().order.reference)
    names = ["Answer…", "Reject…", "Propose a replacement…", "Replace the code…", "Credit…"]
    offered = {
        StaffRole.SUPPORT: ["Answer…", "Reject…", "Propose a replacement…", "Credit…"],
        StaffRole.FINANCE: ["Replace the code…", "Credit…"],
        StaffRole.AUDITOR: [],
    }
    for role, expected in offered.items():
        page = text_of(browser_with(role).get(url(case)))
        assert [name for name in names if name in page] == expected


def test_support_proposes_and_finance_decides() -> None:
    complaint = make_complaint()
    support, finance = browser_with(StaffRole.SUPPORT), browser_with(StaffRole.FINANCE)
    first, second = complaint.open(0), complaint.open(1)

    support.post(url(first, "propose"), {"version": "1"})
    form = {"version": "1", "amount": "10.00", "note": "Sorry"}
    assert "must approve" in text_of(support.get(url(second, "credit")))
    support.post(url(second, "credit"), form)

    assert "Propose a replacement…" not in text_of(support.get(url(first)))
    assert str(first) in text_of(finance.get(list_url(Case, state="replacement-proposed")))
    finance.post(url(first, "replace"), {"version": "2"})
    waiting = BookingApproval.objects.get()
    assert ">Approval<" in text_of(finance.get(url(second)))
    finance.post(url(waiting, "approve"))
    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.state, second.state) == ("replaced", "credited")
    order = Order.objects.get(case_id=first.pk)
    assert order.reference in text_of(finance.get(url(first)))
    assert str(first) in text_of(finance.get(url(order)))
    assert "Replacement" in text_of(finance.get(url(order)))
    entry = LedgerEntry.objects.get(kind=EntryKind.CREDIT)
    assert entry.note == "Sorry"
    assert "Answer…" not in text_of(support.get(url(first)))


def test_a_form_that_cannot_be_carried_out_keeps_what_was_typed() -> None:
    complaint = make_complaint()
    case = complaint.open()
    finance, support = browser_with(StaffRole.FINANCE), browser_with(StaffRole.SUPPORT)

    page = text_of(
        finance.post(url(case, "credit"), {"version": "1", "amount": "20.01", "note": "Oh"})
    )
    assert "more than it cost" in page
    assert 'value="20.01"' in page
    page = text_of(support.post(url(case, "answer"), {"version": "7", "text": "typed text"}))
    assert "changed meanwhile" in page
    assert "typed text" in page
    page = text_of(
        support.post(
            url(case, "answer"),
            {
                "version": "1",
                "text": "typed text",
                "attachments": SimpleUploadedFile("a.html", b"<script>"),
            },
        )
    )
    assert "is not a PNG or JPEG picture or a PDF" in page
    case.refresh_from_db()
    assert (case.state, case.version) == ("open", 1)


def test_the_queue_begins_with_the_longest_wait_and_the_first_page_counts_it() -> None:
    complaint = make_complaint()
    first, second = complaint.open(0), complaint.open(1)
    support = browser_with(StaffRole.SUPPORT)

    queue = text_of(support.get(list_url(Case, state="waits-for-us")))
    assert queue.index(f">{first}<") < queue.index(f">{second}<")
    assert "2 cases wait for an answer" in text_of(support.get("/admin/"))
    support.post(url(first, "answer"), {"version": "1", "text": "We look at it."})
    assert "1 case waits for an answer" in text_of(support.get("/admin/"))
    assert f">{first}<" not in text_of(support.get(list_url(Case, state="waits-for-us")))
    assert f">{first}<" in text_of(support.get(list_url(Case, q=str(first.pk))))
    assert f">{second}<" in text_of(support.get(list_url(Case, q=complaint.order.reference)))
    assert "for an answer" not in text_of(browser_with(StaffRole.STOCK_KEEPER).get("/admin/"))

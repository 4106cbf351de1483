"""Staff answer and decide cases in the back office, as far as their role allows."""

from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from audit.models import AuditAction, AuditEntry
from cases.models import Case
from cases.selectors import WHOLE_ORDER
from cases.services import answer_case, assign_case, reject_case, replace_code_of_case
from catalogue.stock.codes import open_code
from core.backoffice.staff_roles import StaffRole
from core.inputs import InputProblem
from merchants.models import Membership
from operators.history.timeline import note_url
from operators.upkeep.reconcile import reconcile
from orders.models import Order
from tests.cases.complaints import PNG, make_complaint
from tests.merchants.people import browser_of
from tests.operators.back_office import (
    browser_with,
    list_url,
    make_case,
    signed_in,
    staff_with,
    text_of,
    url,
)
from wallets.models import BookingApproval, EntryKind, LedgerEntry

pytestmark = pytest.mark.django_db


def test_support_opens_a_case_about_a_code() -> None:
    complaint, support = make_complaint(), browser_with(StaffRole.SUPPORT)
    assert "Open a case…" in text_of(support.get(url(complaint.order)))
    form = text_of(support.get(url(complaint.order, "open_case")))
    assert "Code 2 of 2" in form
    assert "Choose a code or the whole order" in form
    refused = support.post(url(complaint.order, "open_case"), {"code": "", "text": "Bad."})
    assert refused.context["form"].errors.keys() == {"code"}

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


def test_a_case_is_about_the_whole_order_if_that_is_chosen() -> None:
    complaint, support = make_complaint(), browser_with(StaffRole.SUPPORT)

    support.post(url(complaint.order, "open_case"), {"code": WHOLE_ORDER, "text": "All of them."})

    assert Case.objects.get().code is None


def test_a_case_about_an_order_of_one_code_is_about_the_code() -> None:
    complaint, support = make_complaint(quantity=1), browser_with(StaffRole.SUPPORT)
    assert "The whole order" not in text_of(support.get(url(complaint.order, "open_case")))
    complaint.open()
    assert "The whole order" in text_of(support.get(url(complaint.order, "open_case")))


def test_the_timeline_of_an_order_names_its_cases_by_their_numbers() -> None:
    complaint = make_complaint()
    case = complaint.open()

    page = text_of(browser_with(StaffRole.SUPPORT).get(url(complaint.order)))

    assert f'<a class="text-link" href="{url(case)}">case {case.pk}</a>' in page
    assert f"case {complaint.order.reference}" not in page


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
    names = [
        "Reply to the merchant",
        "Close without credit…",
        "Propose a replacement…",
        "Replace the code…",
        "Propose a credit…",
        "Credit…",
    ]
    offered = {
        StaffRole.SUPPORT: [
            "Reply to the merchant",
            "Close without credit…",
            "Propose a replacement…",
            "Propose a credit…",
        ],
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

    question = text_of(support.get(url(first, "propose")))
    assert f"Propose to replace code 1 of {first.order.quantity} of {first.order.goods}" in question
    support.post(url(first, "propose"), {"version": "1", "note": "The photo shows it"})
    page = text_of(finance.get(url(first)))
    assert "The photo shows it" in page
    assert "proposes to replace code 1 of" in page
    assert "Propose a credit…" in text_of(support.get(url(first)))
    assert "Propose a credit…" not in page
    assert page.count("Replace the code…") == 1
    assert "proposes to replace" not in text_of(support.get(url(first)))
    assert "Replacement proposed by" in text_of(support.get(url(first)))
    assert "1 replacement proposed, waits for you" in text_of(finance.get("/admin/"))
    assert "proposed, wait" not in text_of(support.get("/admin/"))
    assert "Replacement proposed" in text_of(finance.get(list_url(Case)))
    form = {"version": "1", "amount": "10.00", "note": "Sorry"}
    form_page = support.get(url(second, "credit"))
    assert "must approve" in text_of(form_page)
    assert form_page.context["form"]["amount"].value() == "10.00", "the price of the code"
    support.post(url(second, "credit"), form)

    assert "Propose a replacement…" not in text_of(support.get(url(first)))
    assert str(first) in text_of(finance.get(list_url(Case, state="replacement-proposed")))
    finance.post(url(first, "replace"), {"version": "2"})
    waiting = BookingApproval.objects.get()
    page = text_of(finance.get(url(second)))
    assert ">Approval<" in page
    assert "proposes a credit of 10.00 USD." in page
    assert f'href="{url(waiting, "approve")}"' in page
    assert "proposes a credit" not in text_of(support.get(url(second)))
    question = text_of(finance.get(url(waiting, "approve")))
    assert "asked for it" in question
    assert "is left to credit" in question
    assert "Compare it" not in question
    finance.post(url(waiting, "approve"))
    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.state, second.state) == ("replaced", "credited")
    assert "left to credit" not in text_of(finance.get(url(first)))
    assert "proposed, wait" not in text_of(finance.get("/admin/"))
    order = Order.objects.get(case_id=first.pk)
    assert order.reference in text_of(finance.get(url(first)))
    assert str(first) in text_of(finance.get(url(order)))
    assert "Replacement" in text_of(finance.get(url(order)))
    assert "Completed, replacement" in text_of(finance.get(url(order)))
    assert "10.00 USD credited" in text_of(finance.get(url(second.order)))
    entry = LedgerEntry.objects.get(kind=EntryKind.CREDIT)
    assert entry.note == "Sorry"
    assert "Reply to the merchant" not in text_of(support.get(url(first)))


def test_finance_declines_what_support_proposes() -> None:
    complaint = make_complaint()
    support, finance = browser_with(StaffRole.SUPPORT), browser_with(StaffRole.FINANCE)
    first, second = complaint.open(0), complaint.open(1)
    assert "Decline…" not in text_of(finance.get(url(first)))
    support.post(url(first, "propose"), {"version": "1"})
    support.post(url(second, "credit"), {"version": "1", "amount": "10.00", "note": "Sorry"})
    assert "Decline…" not in text_of(support.get(url(first)))
    another = browser_with(StaffRole.SUPPORT)
    assert another.post(url(first, "decline"), {"version": "2"}).status_code == 403
    assert text_of(finance.get(url(first))).count("Decline…") == 1

    page = text_of(
        finance.post(url(first, "decline"), {"version": "2", "note": "No photo"}, follow=True)
    )

    assert "The proposal is declined." in page
    assert "Replacement declined" in page
    assert "No photo" in page
    assert "proposes to replace" not in page
    assert "proposed, wait" not in text_of(finance.get("/admin/"))
    assert "Propose a replacement…" in text_of(support.get(url(first)))
    page = text_of(finance.get(url(second)))
    rejects = url(BookingApproval.objects.get(), "reject")
    assert "Decline…" not in page
    assert page.count("Reject…") == 1
    assert f'href="{rejects}"' in page
    assert "Reject a booking" in text_of(finance.get(rejects))


def test_a_proposal_is_withdrawn_by_its_maker_and_names_who_decides() -> None:
    case = make_complaint().open()
    finance = staff_with(StaffRole.FINANCE)
    support, another = browser_with(StaffRole.SUPPORT), browser_with(StaffRole.SUPPORT)
    assert finance.username in text_of(support.get(url(case, "propose")))
    support.post(url(case, "propose"), {"version": "1"})
    page = text_of(support.get(url(case)))
    assert f"These people decide: {finance.username}." in page
    assert "Withdraw the proposal…" in page
    assert url(case, "decline") not in text_of(another.get(url(case)))
    assert "Withdraw the proposal to replace" in text_of(support.get(url(case, "decline")))

    page = text_of(support.post(url(case, "decline"), {"version": "2"}, follow=True))

    assert "The proposal is withdrawn." in page
    assert "Propose a replacement…" in page


def test_a_rejected_credit_says_so_in_the_case_in_the_order_and_on_its_own_page() -> None:
    complaint = make_complaint()
    case = complaint.open()
    support, finance = browser_with(StaffRole.SUPPORT), browser_with(StaffRole.FINANCE)
    support.post(url(case, "credit"), {"version": "1", "amount": "10.00", "note": "Sorry"})
    waiting = BookingApproval.objects.get()

    finance.post(url(waiting, "reject"), {"note": "too much"})

    page = text_of(support.get(url(case)))
    assert "too much" in page.partition("Credit rejected")[2][:300]
    order = text_of(support.get(url(complaint.order)))
    assert "too much" in order.partition("Credit rejected")[2][:600]
    assert "Booking rejected" not in order
    assert url(case) in order.partition("Credit rejected")[2][:300]
    approval = text_of(finance.get(url(waiting)))
    assert "Booking rejected" in approval
    assert "too much" in approval
    merchant = browser_of(complaint.member).get(f"/merchant/cases/{case.pk}/")
    assert merchant.status_code == 200
    assert "too much" not in text_of(merchant)
    support.post(url(case, "credit"), {"version": "3", "amount": "8.00", "note": "Sorry"})
    finance.post(url(BookingApproval.objects.latest("pk"), "reject"), {"note": ""})
    page = text_of(support.get(url(case)))
    assert page.count("Credit rejected") == 2
    assert "Sorry" not in page, "the note of the credit is no reason of the rejection"


@pytest.mark.django_db(transaction=True)
def test_a_credit_is_withdrawn_by_its_maker_and_names_who_decides() -> None:
    case = make_complaint().open()
    finance, maker = staff_with(StaffRole.FINANCE), staff_with(StaffRole.SUPPORT)
    support, another = signed_in(maker), browser_with(StaffRole.SUPPORT)
    support.post(url(case, "credit"), {"version": "1", "amount": "10.00", "note": "Sorry"})

    page = text_of(support.get(url(case)))
    assert f"{maker} proposed a credit of 10.00 USD on " in page
    assert f"These people decide: {finance}." in page
    assert "Waits for a decision: 0" in page
    assert "<strong>Approval</strong>" not in page
    assert "Withdraw the proposal…" in page
    for others in (another, signed_in(finance)):
        assert url(case, "decline") not in text_of(others.get(url(case)))
        assert others.post(url(case, "decline"), {"version": "2"}).status_code == 403
    assert "Withdraw the credit of 10.00 USD for" in text_of(support.get(url(case, "decline")))

    form = {"version": "2", "note": "wrong order"}
    page = text_of(support.post(url(case, "decline"), form, follow=True))

    assert "The proposal is withdrawn." in page
    assert "Credit withdrawn" in page
    assert "wrong order" in page
    assert "Propose a credit…" in page
    assert BookingApproval.objects.get().state == "withdrawn"
    assert support.post(url(case, "decline"), form).status_code == 403
    assert reconcile()["findings"] == []


@pytest.mark.django_db(transaction=True)
def test_a_stale_form_withdraws_no_other_proposal() -> None:
    """The form that withdraws 10.00 does not withdraw the 8.00 that were proposed later."""
    case = make_complaint().open()
    support, finance = browser_with(StaffRole.SUPPORT), browser_with(StaffRole.FINANCE)
    support.post(url(case, "credit"), {"version": "1", "amount": "10.00", "note": "Sorry"})
    finance.post(url(BookingApproval.objects.get(), "reject"), {"note": "too much"})
    support.post(url(case, "credit"), {"version": "3", "amount": "8.00", "note": "Sorry"})

    answer = support.post(url(case, "decline"), {"version": "2"}, follow=True)

    assert "This case has changed meanwhile." in text_of(answer)
    assert BookingApproval.objects.latest("pk").state == "waiting"


def test_an_order_says_what_credit_waits_and_offers_only_the_rest() -> None:
    complaint = make_complaint()
    case = complaint.open()
    support, finance = browser_with(StaffRole.SUPPORT), browser_with(StaffRole.FINANCE)
    support.post(url(case, "credit"), {"version": "1", "amount": "12.00", "note": "Sorry"})

    waits = f'A credit of 12.00 USD waits for approval in <a href="{url(case)}"'
    of_support, of_finance = (text_of(one.get(url(complaint.order))) for one in (support, finance))
    assert waits in of_support
    assert "Up to 8.00 USD. Propose it in a case" in of_support
    assert waits in of_finance
    assert "Pays up to 8.00 USD back" in of_finance

    support.post(url(case, "decline"), {"version": "2"})
    support.post(url(case, "credit"), {"version": "3", "amount": "20.00", "note": "Sorry"})
    of_support, of_finance = (text_of(one.get(url(complaint.order))) for one in (support, finance))
    assert waits.replace("12.00", "20.00") in of_support
    assert "Propose it in a case" not in of_support
    assert url(complaint.order, "credit") not in of_finance


def test_a_withdrawn_replacement_is_not_a_declined_one() -> None:
    case, support = make_complaint().open(), browser_with(StaffRole.SUPPORT)
    support.post(url(case, "propose"), {"version": "1"})

    page = text_of(support.post(url(case, "decline"), {"version": "2"}, follow=True))

    assert "Replacement withdrawn" in page
    assert "Replacement declined" not in page


def test_a_sentence_about_many_people_says_that_there_are_others() -> None:
    case, support = make_complaint().open(0), browser_with(StaffRole.SUPPORT)
    five = [str(staff_with(StaffRole.FINANCE)) for _number in range(5)]
    question = text_of(support.get(url(case, "propose")))
    assert f"decide: {', '.join(sorted(five))}." in question

    staff_with(StaffRole.FINANCE)

    assert " and others." in text_of(support.get(url(case, "propose")))


def test_a_proposal_is_counted_once_and_has_a_tab() -> None:
    complaint = make_complaint()
    first, second = complaint.open(0), complaint.open(1)
    support, finance = browser_with(StaffRole.SUPPORT), browser_with(StaffRole.FINANCE)
    support.post(url(first, "propose"), {"version": "1"})

    page = text_of(finance.get("/admin/"))
    assert "1 replacement proposed, waits for you" in page
    assert "1 case waits for an answer" in page
    proposals = text_of(finance.get(list_url(Case, state="replacement-proposed")))
    assert "Replacement proposed (1)" in proposals
    proposed = text_of(finance.get(url(first)))
    assert "Waits for a decision: 0" in proposed
    assert "Waits for us" not in proposed
    assert "Waits for us: 0" in text_of(finance.get(url(second)))
    assert "Waits for us (1)" in proposals
    queue = text_of(finance.get(list_url(Case, state="waits-for-us")))
    assert f">{second}<" in queue
    assert f">{first}<" not in queue


def test_a_credit_that_waits_for_approval_waits_for_no_answer() -> None:
    case, support = make_complaint().open(0), browser_with(StaffRole.SUPPORT)
    finance = browser_with(StaffRole.FINANCE)
    support.post(url(case, "propose"), {"version": "1"})
    support.post(url(case, "credit"), {"version": "2", "amount": "5.00", "note": "Sorry"})

    first = text_of(finance.get("/admin/"))
    assert "1 booking waits for approval" in first
    assert "waits for an answer" not in first
    page = text_of(support.get(url(case)))
    assert "Waits for approval of a credit" in page
    assert "Waits for us" not in page
    assert page.count("These people decide") == 1
    assert "Replacement proposed by" not in page
    queue = text_of(support.get(list_url(Case, state="waits-for-us")))
    assert "Waits for us (0)" in queue
    assert f">{case}<" not in queue
    assert "Waits for approval of a credit" in text_of(support.get(list_url(Case)))


@pytest.mark.django_db(transaction=True)
def test_what_was_replaced_is_not_left_to_credit() -> None:
    complaint, browser = make_complaint(), browser_with(StaffRole.FINANCE)
    order, case = complaint.order, complaint.open(0)
    replacement = replace_code_of_case(case=case, version=1, actor=staff_with(StaffRole.FINANCE))
    link = f'href="{url(replacement)}" class="text-link">{replacement}</a>'

    page = text_of(browser.get(url(order)))
    assert "Nothing was refunded or credited. 1 code was replaced." in page
    assert "Pays up to 10.00 USD back" in page
    assert page.count(link) == 2, "in the remedies and in the list of codes"
    assert f"Code replaced by order <a {link}" in text_of(browser.get(url(case)))
    form = text_of(browser.get(url(order, "credit")))
    assert "Left to credit: 10.00 USD." in form
    assert "Code 1 was replaced by order" in form
    assert link in form
    sent = {"amount": "10.01", "note": "Sorry", "form_id": str(uuid4())}
    refused = browser.post(url(order, "credit"), sent, follow=True)
    assert "Only 10.00 USD is left" in text_of(refused)
    case_form = text_of(browser.get(url(complaint.open(None), "credit")))
    assert "20.00 USD, of which 10.00 USD is left to credit" in case_form
    assert 'value="10.00"' in case_form

    browser.post(url(order, "credit"), {**sent, "amount": "10.00", "confirmed": "1"})

    page = text_of(browser.get(url(order)))
    assert "20.00 USD was paid: 10.00 USD credited. Nothing is left. 1 code was replaced." in page
    assert "Not possible: nothing is left to credit." in page
    assert url(order, "credit") not in page
    assert reconcile()["findings"] == []


def test_a_credit_says_whether_it_is_booked_or_waits() -> None:
    complaint = make_complaint()
    first, second = complaint.open(0), complaint.open(1)
    form = {"version": "1", "amount": "10.00", "note": "Sorry"}
    support, finance = browser_with(StaffRole.SUPPORT), browser_with(StaffRole.FINANCE)
    page = text_of(support.post(url(first, "credit"), form, follow=True))
    assert "The credit of 10.00 USD waits for approval." in page
    approvers = User.objects.filter(groups__name=StaffRole.FINANCE)
    assert f"on their first page and decide: {approvers.get()}." in page
    page = text_of(finance.post(url(second, "credit"), form, follow=True))
    assert "10.00 USD was credited, and the case is closed." in page


def test_an_approval_leads_to_its_case_and_the_ledger_names_both_people() -> None:
    case = make_complaint().open()
    support, finance = browser_with(StaffRole.SUPPORT), browser_with(StaffRole.FINANCE)
    support.post(url(case, "credit"), {"version": "1", "amount": "10.00", "note": "Sorry"})
    waiting = BookingApproval.objects.get()

    for shown in (finance.get(url(waiting)), finance.get(url(waiting, "approve"))):
        assert f'href="{url(case)}"' in text_of(shown)
        assert "credit-of-case" not in text_of(shown)
    finance.post(url(waiting, "approve"))

    waiting.refresh_from_db()
    who = f"{waiting.asked_by}, approved by {waiting.decided_by}"
    assert who in text_of(finance.get(list_url(LedgerEntry)))
    asked, taken, approved = support.get(url(case)).context["newest"][-3:]
    assert taken.text == "Took over the case"
    assert (asked.text, asked.who) == ("Credit of a case", str(waiting.asked_by))
    assert (approved.text, approved.who) == ("Credit approved", str(waiting.decided_by))


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
    for page in (url(first), list_url(Case)):
        assert text_of(support.get(page)).count("Waits for the merchant") == 1
    assert f">{first}<" not in text_of(support.get(list_url(Case, state="waits-for-us")))
    assert f">{first}<" in text_of(support.get(list_url(Case, q=str(first.pk))))
    assert f">{second}<" in text_of(support.get(list_url(Case, q=complaint.order.reference)))
    other = make_complaint().open()
    named = text_of(support.get(list_url(Case, q=str(complaint.merchant.account))))
    assert f">{second}<" in named
    assert f">{other}<" not in named
    assert "for an answer" not in text_of(browser_with(StaffRole.STOCK_KEEPER).get("/admin/"))


def accept_invitation(*people: User) -> None:
    User.objects.filter(pk__in=[one.pk for one in people]).update(last_login=timezone.now())


def test_a_case_is_assigned_to_me_to_a_colleague_and_to_nobody() -> None:
    complaint = make_complaint()
    case, other = complaint.open(0), complaint.open(1)
    ann, ben = staff_with(StaffRole.SUPPORT), staff_with(StaffRole.FINANCE)
    browser = signed_in(ann)
    assert f">{ben}<" not in text_of(browser.get(url(case)))  # who cannot sign in yet
    assert ben.username not in text_of(browser.get(list_url(Case)))
    accept_invitation(ann, ben)
    assert f">{ben}<" in text_of(browser.get(url(case)))
    mine, nobodys = list_url(Case, assignee="mine"), list_url(Case, assignee="nobody")
    assert f">{case}<" in text_of(browser.get(nobodys))

    browser.post(url(case, "assign"), {"seen": "", "assignee": ann.pk})
    page = text_of(browser.get(mine))
    assert f">{case}<" in page
    assert f">{other}<" not in page
    assert "Mine (1)" in page
    assert f">{case}<" not in text_of(browser.get(nobodys))
    browser.post(url(case, "assign"), {"seen": ann.pk, "assignee": ben.pk})
    assert f">{case}<" in text_of(browser.get(list_url(Case, assignee=ben.pk)))
    browser.post(url(case, "assign"), {"seen": ben.pk, "assignee": ""})

    entries = AuditEntry.objects.filter(action=AuditAction.CASE_ASSIGNED).order_by("pk")
    assert [entry.changes["assigned_to"] for entry in entries] == [
        [None, str(ann)],
        [str(ann), str(ben)],
        [str(ben), None],
    ]
    case.refresh_from_db()
    assert (case.assigned_to, case.version) == (None, 1)


def test_an_assignment_that_is_late_or_to_somebody_without_the_right_is_refused() -> None:
    case, support = make_complaint().open(), staff_with(StaffRole.SUPPORT)
    accept_invitation(support)
    browser, auditor = signed_in(support), staff_with(StaffRole.AUDITOR)
    form = {"seen": "", "assignee": support.pk}
    assert signed_in(auditor).post(url(case, "assign"), form).status_code == 403
    assert "Assigned to nobody" in text_of(signed_in(auditor).get(url(case)))

    to_auditor = {"seen": "", "assignee": auditor.pk}
    page = text_of(browser.post(url(case, "assign"), to_auditor, follow=True))
    assert "does not work on cases" in page
    assign_case(case=case, to=staff_with(StaffRole.FINANCE), seen=None, actor=support)
    page = text_of(browser.post(url(case, "assign"), form, follow=True))
    assert "was assigned or closed meanwhile" in page
    with pytest.raises(InputProblem):
        assign_case(case=case, to=None, seen=None, actor=support)

    case.refresh_from_db()
    assert case.assigned_to != support
    assert AuditEntry.objects.filter(action=AuditAction.CASE_ASSIGNED).count() == 1


def test_who_answers_first_takes_over_the_case() -> None:
    case, support = make_complaint().open(), staff_with(StaffRole.SUPPORT)
    answer_case(case=case, version=1, actor=support, text="We look at it.")
    case.refresh_from_db()
    answer_case(case=case, version=2, actor=staff_with(StaffRole.SUPPORT), text="So do I.")

    case.refresh_from_db()
    assert case.assigned_to == support
    assert "Took over the case" in text_of(browser_with(StaffRole.SUPPORT).get(url(case)))


def test_who_proposes_first_takes_over_the_case() -> None:
    complaint, (ann, ben) = (
        make_complaint(quantity=3),
        (staff_with(StaffRole.SUPPORT) for _ in range(2)),
    )
    first, second, of_ben = (complaint.open(place) for place in range(3))
    assign_case(case=of_ben, to=ben, seen=None, actor=ben)
    browser = signed_in(ann)

    browser.post(url(first, "propose"), {"version": "1"})
    credit = {"version": "1", "amount": "10.00", "note": "Sorry"}
    browser.post(url(second, "credit"), credit)
    browser.post(url(of_ben, "propose"), {"version": "1"})

    mine = text_of(browser.get(list_url(Case, assignee="mine")))
    assert [f">{case}<" in mine for case in (first, second, of_ben)] == [True, True, False]
    entries = AuditEntry.objects.filter(action=AuditAction.CASE_ASSIGNED).order_by("pk")
    assert [entry.changes["assigned_to"] for entry in entries] == [
        [None, str(ben)],
        [None, str(ann)],
        [None, str(ann)],
    ]


def test_an_answer_is_written_although_a_colleague_was_assigned_meanwhile() -> None:
    case, (ann, ben) = make_complaint().open(), (staff_with(StaffRole.SUPPORT) for _ in range(2))
    assign_case(case=Case.objects.get(), to=ben, seen=None, actor=ben)

    answer_case(case=case, version=1, actor=ann, text="We look at it.")

    case.refresh_from_db()
    assert case.assigned_to == ben
    assert case.messages.count() == 2
    assert AuditEntry.objects.filter(action=AuditAction.CASE_ASSIGNED).count() == 1


def test_the_conversation_holds_messages_and_what_only_staff_see() -> None:
    complaint = make_complaint()
    case, support = complaint.open(), staff_with(StaffRole.SUPPORT)
    browser, member = signed_in(support), Membership.objects.get(user=complaint.member)
    answer_case(case=case, version=1, actor=support, text="Which shop was it?")
    browser.post(f"/admin/notes/cases.case/{case.pk}/", {"note": "The supplier knows of it."})
    case.refresh_from_db()
    answer_case(case=case, version=2, actor=complaint.member, text="The European one.")

    page = text_of(browser.get(url(case)))
    texts = ["It was used", "Which shop", "The supplier knows", "The European", 'id="reply"']
    places = [page.index(text) for text in texts]
    assert places == sorted(places)
    assert page.count('class="talk-note"') == 1
    shown = text_of(browser_of(member).get(f"/merchant/cases/{case.pk}/"))
    assert "The European one." in shown
    assert "The supplier knows of it." not in shown
    assert str(support) not in shown


def test_a_reply_that_crosses_a_message_shows_it_and_can_be_sent_again() -> None:
    complaint = make_complaint()
    case, browser = complaint.open(), browser_with(StaffRole.SUPPORT)
    answer_case(case=case, version=1, actor=complaint.member, text="It works now.")

    page = text_of(browser.post(url(case, "answer"), {"version": "1", "text": "We replace it."}))

    assert "It works now." in page
    assert ">We replace it.</textarea>" in page
    assert 'name="version" value="2"' in page
    assert case.messages.count() == 2


def test_an_answer_to_a_case_that_was_closed_meanwhile_is_shown_to_be_copied() -> None:
    case, browser = make_complaint().open(), browser_with(StaffRole.SUPPORT)
    reject_case(case=case, version=1, actor=staff_with(StaffRole.SUPPORT), text="It works.")

    page = text_of(browser.post(url(case, "answer"), {"version": "1", "text": "Typed & unsent."}))

    assert "closed meanwhile" in page
    assert "<p>Typed &amp; unsent.</p>" in page
    assert "Reply to the merchant" not in page
    assert case.messages.count() == 2
    assert "closed meanwhile" not in text_of(browser.get(url(case, "answer")))


def test_a_note_that_is_refused_can_be_corrected() -> None:
    """A browser counts a line break as one character, and sends two."""
    case, browser = make_complaint().open(), browser_with(StaffRole.SUPPORT)
    note = "Typed note.\r\n" + "x" * 490

    page = text_of(browser.post(f"/admin/notes/cases.case/{case.pk}/", {"note": note}))

    assert "at most 500 characters" in page
    assert "Typed note." in page
    assert "{note: true}" in page
    assert not AuditEntry.objects.filter(action=AuditAction.NOTE_ADDED).exists()


def test_a_long_conversation_shows_its_beginning_and_its_end() -> None:
    complaint = make_complaint()
    case = complaint.open()
    for number in range(12):
        case.refresh_from_db()
        text = f"Message {number:02}."
        answer_case(case=case, version=case.version, actor=complaint.member, text=text)

    page = text_of(browser_with(StaffRole.SUPPORT).get(url(case)))

    before, folded, after = (
        page.partition("<details")[0],
        *page.partition("<details")[2].split("</details>", 1),
    )
    assert "It was used before." in before
    assert "Show 6 entries in between" in folded
    assert [f"Message {number:02}." in after for number in range(12)] == [False] * 6 + [True] * 6


def test_a_note_with_a_code_of_the_order_is_refused() -> None:
    """Notes are kept for ever, and more people read them than may reveal codes."""
    complaint, support = make_complaint(), browser_with(StaffRole.SUPPORT)
    case, code = complaint.open(), complaint.codes[0]
    text = f"Tried {open_code(code.sealed, code.digest).code.lower()} myself"

    for row in (case, case.order):
        answer = support.post(note_url(row), {"note": text}, follow=True)
        assert "This note has a code of the order in it." in text_of(answer)
    notes = AuditEntry.objects.filter(action=AuditAction.NOTE_ADDED)
    assert not notes.exists()

    support.post(note_url(case), {"note": "Tried the code myself"})
    assert notes.get().note == "Tried the code myself"


@pytest.mark.django_db(transaction=True)
def test_a_note_of_a_step_with_a_code_of_the_order_is_refused() -> None:
    complaint, support = make_complaint(), browser_with(StaffRole.SUPPORT)
    case, code, refused = complaint.open(), complaint.codes[0], "This note has a code of the order"
    note = f"Tried {open_code(code.sealed, code.digest).code} myself"

    form = {"version": "1", "amount": "1.00", "note": note}
    answers = [support.post(url(case, step), form) for step in ("propose", "credit")]
    assert Case.objects.get().version == 1
    support.post(url(case, "credit"), form | {"note": "Sorry"})
    waiting = BookingApproval.objects.get()
    answers.append(
        browser_with(StaffRole.FINANCE).post(note_url(waiting), {"note": note}, follow=True)
    )
    answers.append(support.post(url(case, "decline"), {"version": "2", "note": note}))

    assert [refused in text_of(answer) for answer in answers] == [True] * 4
    waiting.refresh_from_db()
    assert waiting.state == "waiting"
    assert not AuditEntry.objects.filter(note__contains=note).exists()

"""Every path of the merchant site, requested by every kind of person.

Each path of merchants/urls.py needs a row here; the first test fails for a path without one.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client
from django.urls import reverse

from accounts.models import Account, ApiClient, ApiKey, SecondFactor
from cases.models import CaseFile
from merchants.email.reports import choose_report
from merchants.models import BookKey, Email, Frequency, MemberSession, Role
from merchants.money.book_keys import find_book_key, issue_book_key
from merchants.people import access
from merchants.people.invitations import invite_person
from merchants.urls import urlpatterns
from tests.answers import without_random_values
from tests.audited import recorded
from tests.factories import (
    NEIGHBOUR,
    Merchant,
    make_account,
    make_client,
    make_key,
    make_product,
)
from tests.merchants.people import browser_of, make_member
from tests.neighbour import ours
from tests.operators.back_office import make_case, make_close, make_proof, make_staff
from wallets.transfers import announce_transfer

pytestmark = pytest.mark.django_db

READ, FORM, DO = "only GET", "GET and POST", "only POST"


@dataclass(frozen=True)
class Row:
    """One path: the least role (None: anybody), its methods, and the arguments of its path.

    `names` are ids of the account's rows in World.ids; `words` are fixed arguments.
    """

    least: Role | None
    how: str
    names: tuple[str, ...] = ()
    words: tuple[tuple[str, str], ...] = ()
    sent: str = ""

    def path(self, name: str, ids: dict[str, Any]) -> str:
        own = {one: ids[one] for one in self.names}
        return reverse(f"merchants:{name}", kwargs={**own, **dict(self.words)})


ROWS = {
    "sign_in": Row(None, FORM),
    "sign_out": Row(None, DO),
    "join": Row(None, FORM),
    "ask_reset": Row(None, FORM),
    "reset": Row(None, FORM),
    "overview": Row(Role.VIEWER, READ),
    "clients": Row(Role.VIEWER, READ),
    "add_client": Row(Role.DEVELOPER, FORM),
    "client": Row(Role.VIEWER, READ, ("client_id",)),
    "rename_client": Row(Role.DEVELOPER, FORM, ("client_id",)),
    "switch_client": Row(Role.DEVELOPER, FORM, ("client_id",)),
    "allowlist": Row(Role.DEVELOPER, FORM, ("client_id",)),
    "spending_limit": Row(Role.OWNER, FORM, ("client_id",)),
    "issue_key": Row(Role.DEVELOPER, FORM, ("client_id",)),
    "rotate_keys": Row(Role.DEVELOPER, FORM, ("client_id",)),
    "revoke_key": Row(Role.DEVELOPER, FORM, ("client_id", "key_id")),
    "issue_book_key": Row(Role.OWNER, FORM),
    "revoke_book_key": Row(Role.OWNER, FORM, ("book_key_id",)),
    "references": Row(Role.VIEWER, READ),
    "set_reference": Row(Role.DEVELOPER, DO, sent="product={product}&reference=mine"),
    "export_references": Row(Role.VIEWER, READ, words=(("format", "csv"),)),
    "references_file": Row(Role.VIEWER, READ),
    "import_references": Row(Role.DEVELOPER, FORM),
    "prices": Row(Role.VIEWER, READ),
    "export_prices": Row(Role.VIEWER, READ, words=(("format", "csv"),)),
    "requests": Row(Role.VIEWER, FORM),
    "search": Row(Role.VIEWER, FORM),
    "wallet": Row(Role.VIEWER, READ),
    "statement_export": Row(Role.VIEWER, READ, words=(("format", "json"),)),
    "signed_statement": Row(Role.VIEWER, READ),
    "months": Row(Role.VIEWER, READ),
    "month_statement": Row(Role.VIEWER, READ, ("month",), words=(("format", "csv"),)),
    "company": Row(Role.VIEWER, READ),
    "propose_company": Row(Role.OWNER, FORM),
    "withdraw_company": Row(Role.OWNER, DO),
    "alert": Row(Role.OWNER, FORM),
    "announce_transfer": Row(Role.OWNER, FORM),
    "withdraw_transfer": Row(Role.OWNER, FORM, ("transfer_id",)),
    "spend": Row(Role.VIEWER, READ),
    "orders": Row(Role.VIEWER, FORM),
    "orders_export": Row(Role.VIEWER, READ, words=(("format", "csv"),)),
    "export_requests": Row(Role.VIEWER, READ, words=(("format", "csv"),)),
    "export_clients": Row(Role.VIEWER, READ, words=(("format", "csv"),)),
    "export_people": Row(Role.VIEWER, READ, words=(("format", "csv"),)),
    "export_transfers": Row(Role.VIEWER, READ, words=(("format", "csv"),)),
    "order": Row(Role.VIEWER, READ, ("reference",)),
    "new_case": Row(Role.VIEWER, FORM, ("reference",)),
    "cases": Row(Role.VIEWER, READ),
    "export_cases": Row(Role.VIEWER, READ, words=(("format", "csv"),)),
    "case": Row(Role.VIEWER, FORM, ("case_id",)),
    "case_file": Row(Role.VIEWER, READ, ("case_id", "file_id")),
    "delivery_proof": Row(Role.VIEWER, READ, ("reference", "proof_id")),
    "people": Row(Role.VIEWER, READ),
    "invite": Row(Role.OWNER, FORM),
    "second_factors": Row(Role.OWNER, FORM),
    "withdraw": Row(Role.OWNER, FORM, ("invitation_id",)),
    "role": Row(Role.OWNER, FORM, ("membership_id",)),
    "remove": Row(Role.OWNER, FORM, ("membership_id",)),
    "reports": Row(Role.VIEWER, FORM, sent="kind=statement&every=week"),
    "end_report": Row(Role.VIEWER, DO, ("report_id",)),
    "two_factor": Row(Role.VIEWER, FORM),
    "profile": Row(Role.VIEWER, READ),
    "password": Row(Role.VIEWER, FORM),
    "time_zone": Row(Role.VIEWER, FORM),
    "two_factor_on": Row(Role.VIEWER, FORM),
    "backup_codes": Row(Role.VIEWER, FORM),
    "two_factor_off": Row(Role.VIEWER, FORM),
    "end_sessions": Row(Role.VIEWER, DO),
    "end_session": Row(Role.VIEWER, DO, ("session_id",)),
}


# Only the person who asked for a file gets it, whatever their role (test_prepared_files.py).
OF_ONE_PERSON = {"file", "file_part", "cancel_file"}


@dataclass
class World:
    """An account with a row for every id that paths contain."""

    account: Account
    ids: dict[str, Any]


@pytest.fixture
def world() -> World:
    return make_world()


def make_world() -> World:
    account = make_account()
    colleague = make_member(account, Role.VIEWER)
    client = make_client(account)
    make_key(client)
    owner = make_member(account)
    invitation = invite_person(
        account=account, email="new@b.example", role=Role.VIEWER, invited_by=owner.user
    )
    code = Merchant(client).buy(product_id=make_product(codes=1).pk, quantity=1)
    case = make_case(code.json()["data"]["reference"])
    proof = make_proof(Merchant(client))
    ids = {
        "client_id": client.pk,
        "key_id": client.keys.earliest("pk").pk,
        "book_key_id": make_book_key(account).pk,
        "membership_id": colleague.pk,
        "invitation_id": invitation.pk,
        "session_id": session_of(owner.user),
        "reference": proof.fulfilment.order_reference,
        "proof_id": proof.pk,
        "case_id": case.pk,
        "file_id": CaseFile.objects.get(message__case=case).pk,
        "product": make_product().pk,
        "month": month_of(account),
        "report_id": report_of(owner.user),
        "transfer_id": announce_transfer(
            account=account, amount=Decimal(5), reference="bank 1", actor=owner.user
        ).pk,
    }
    return World(account, ids)


def month_of(account: Account) -> str:
    """Closes a month of the account, and returns its name."""
    make_close(account, date(2026, 1, 31))
    return "2026-01"


def make_book_key(account: Account) -> BookKey:
    key = find_book_key(issue_book_key(account=account, actor=make_member(account).user))
    assert key is not None
    return key


def session_of(user: User) -> int:
    """Makes another session of this person, and returns its id."""
    browser = browser_of(user)
    browser.get("/merchant/")
    return MemberSession.objects.get(session_id=browser.session.session_key).pk


def report_of(user: User) -> int:
    """Chooses a report for this person, and returns its id."""
    return choose_report(user=user, kind="statement", every=Frequency.MONTH).pk


def _role(role: Role) -> Callable[[World], User]:
    return lambda world: make_member(world.account, role).user


def _removed(world: World) -> User:
    user = make_member(world.account).user
    user.is_active = False
    user.save()
    return user


def _switched_off(world: World) -> User:
    user = make_member(world.account).user
    world.account.enabled = False
    world.account.save()
    return user


def _without_factor(world: World) -> User:
    """An owner who has a second factor but has not entered its code."""
    user = make_member(world.account).user
    SecondFactor.objects.create(user=user)
    return user


IDENTITIES: dict[str, Callable[[World], User | None]] = {
    "anonymous": lambda world: None,
    "viewer": _role(Role.VIEWER),
    "developer": _role(Role.DEVELOPER),
    "owner": _role(Role.OWNER),
    "owner of another account": lambda world: make_member().user,
    "nobody's member": lambda world: User.objects.create_user("nobody@b.example"),
    "staff": lambda world: make_staff(superuser=True),
    "removed": _removed,
    "owner of a switched-off account": _switched_off,
    "owner without their second factor": _without_factor,
}
MEMBERS = {
    "viewer": Role.VIEWER,
    "developer": Role.DEVELOPER,
    "owner": Role.OWNER,
    "owner of another account": Role.OWNER,
    "owner of a switched-off account": Role.VIEWER,
}
FEW_RIGHTS = "viewer"

SIGN_IN, CHECK = "302 /merchant/sign-in/", "302 /merchant/two-factor/"
ALLOWED = {"200", "302"}


def expected(name: str, method: str, identity: str) -> set[str]:
    """The statuses that are right for this path, method and person."""
    row = ROWS[name]
    exempt = row.least is None or name == "two_factor"
    if identity == "owner without their second factor" and not exempt:
        return {CHECK}
    if (row.how, method) in ((READ, "POST"), (DO, "GET")):
        return {"405"}
    if row.least is None:
        return ALLOWED | {"410"}
    if identity in ("anonymous", "removed"):
        return {SIGN_IN}
    if identity in ("staff", "nobody's member"):
        return {"403"}
    if identity == "owner without their second factor":
        return {"200"}
    if not MEMBERS[identity].includes(row.least):
        return {"403"}
    if identity == "owner of another account" and row.names:
        return {"404"}
    return ALLOWED


def ask(browser: Client, method: str, name: str, ids: dict[str, Any]) -> Any:
    """A request of a browser that keeps the cookies it had. Signing in for each takes too long."""
    body = ROWS[name].sent.format(**ids)
    path = ROWS[name].path(name, ids)
    cookies = deepcopy(browser.cookies)
    try:
        return browser.generic(method, path, body, "application/x-www-form-urlencoded")
    finally:
        browser.cookies = cookies


def text(answer: Any) -> str:
    parts = answer.streaming_content if answer.streaming else [answer.content]
    return b"".join(parts).decode()


def said(answer: Any, name: str, identity: str) -> str:
    """The status, with the target of a redirect to the sign-in or second factor page."""
    place = str(answer.headers.get("Location", "")).partition("?")[0]
    away = f"302 {place}"
    own = ROWS[name].least is None
    return away if away in (SIGN_IN, CHECK) and not own else str(answer.status_code)


@contextmanager
def undone() -> Iterator[None]:
    """Rolls back everything inside. Durable transactions accept it as the test's own block."""
    block = transaction.atomic()
    block._from_testcase = True  # type: ignore[attr-defined]
    with block:
        yield
        transaction.set_rollback(True)


def traces() -> tuple[int, int]:
    """How many audit entries and emails there are. Every change adds one; sign-ins do not count."""
    return recorded().count(), ours(Email).count()


def test_every_path_has_a_row() -> None:
    assert {pattern.name for pattern in urlpatterns} == set(ROWS) | OF_ONE_PERSON


@pytest.mark.parametrize("identity", sorted(set(IDENTITIES) - {FEW_RIGHTS}))
def test_every_other_person_gets_the_expected_answer(
    identity: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert wrong_answers(identity, world, monkeypatch) == []


def test_a_person_with_few_rights_gets_the_expected_answer(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`make system-test` asks as everybody else."""
    assert wrong_answers(FEW_RIGHTS, world, monkeypatch) == []


def wrong_answers(identity: str, world: World, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that answer this person otherwise than expected, or change something."""
    for limit in ("HEAVY_PAGES_PER_MINUTE", "ACCOUNT_HEAVY_PAGES_PER_MINUTE"):
        monkeypatch.setattr(access, limit, 1000)
    user = IDENTITIES[identity](world)
    ids = dict(world.ids)
    if identity in MEMBERS and identity != "owner of another account":
        assert user is not None
        ids |= {"session_id": session_of(user), "report_id": report_of(user)}
    wrong = []
    browser = browser_of(user)
    before = traces()
    for name in ROWS:
        for method in ("GET", "POST"):
            with undone():
                answer = ask(browser, method, name, ids)
                right = expected(name, method, identity)
                got = said(answer, name, identity)
                if got not in right or (not right & ALLOWED and traces() != before):
                    wrong.append(f"{method} {name}: {got}, not {sorted(right)}")
    return wrong


def test_another_accounts_row_is_a_404_like_an_unknown_one(world: World) -> None:
    stranger = browser_of(make_member())
    for name in (name for name, row in ROWS.items() if row.names):
        method = "POST" if ROWS[name].how == DO else "GET"
        foreign = ask(stranger, method, name, world.ids)
        for odd in (10**9, 0, 10**30):
            unknown = ask(stranger, method, name, dict.fromkeys(world.ids, odd))
            assert (foreign.status_code, unknown.status_code) == (404, 404), name
            assert without_random_values(foreign) == without_random_values(unknown), name


def test_each_id_of_a_path_is_checked_by_itself(world: World) -> None:
    """Among ids of one's own account, one id of another account is a 404."""
    other = make_world()
    user = make_member(world.account).user
    ids = {**world.ids, "session_id": session_of(user)}
    owner = browser_of(user)
    for name, row in ROWS.items():
        for foreign in set(row.names) - {"month"}:  # a name, not an id
            for method in ("GET", "POST"):
                if (method == "GET" and row.how == DO) or (method == "POST" and row.how == READ):
                    continue
                answer = ask(owner, method, name, {**ids, foreign: other.ids[foreign]})
                assert answer.status_code == 404, (name, foreign)


def test_no_page_is_cached_or_shows_anything_of_the_neighbour(world: World) -> None:
    theirs = Account.objects.get(name=NEIGHBOUR)
    secrets = [
        NEIGHBOUR,
        "@neighbour.example",
        "spare-",
        *theirs.fulfilments.values_list("order_reference", flat=True),
        *ApiKey.objects.filter(client__account=theirs).values_list("prefix", flat=True),
    ]
    user = make_member(world.account).user
    ids = {**world.ids, "session_id": session_of(user)}
    owner = browser_of(user)
    for name in ROWS:
        answer = ask(owner, "GET", name, ids)
        assert "no-store" in answer["Cache-Control"], name
        assert "default-src 'none'" in answer["Content-Security-Policy"], name
        assert "unsafe" not in answer["Content-Security-Policy"], name
        page = text(answer)
        assert [secret for secret in secrets if secret in page] == [], name


def test_pages_without_ids_show_nothing_of_another_account(world: World) -> None:
    stranger = browser_of(make_member())
    secrets = [
        world.account.name,
        "new@b.example",
        ours(ApiClient).get().name,
        world.ids["reference"],
    ]
    for name, row in ROWS.items():
        if not row.names and row.how != DO:
            page = text(ask(stranger, "GET", name, {}))
            assert [secret for secret in secrets if secret in page] == [], name


def test_a_form_without_a_csrf_token_is_refused(world: World) -> None:
    owner = browser_of(make_member(world.account), csrf=True)
    for name, row in ROWS.items():
        if row.how != READ:
            answer = ask(owner, "POST", name, world.ids)
            assert answer.status_code == 403, name
            assert "This form has expired" in answer.content.decode(), name

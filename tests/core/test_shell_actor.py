"""Commands record who ran them: in the ledger and in the audit trail."""

import os
import pwd

import pytest

from audit.services import record_action
from core.command_line import acting_from_shell, shell_actor
from tests.audited import recorded
from tests.commands import run
from tests.factories import Merchant, make_account
from tests.neighbour import ours
from tests.operators.back_office import make_staff, signed_in, text_of, url
from wallets.models import LedgerEntry


@pytest.fixture(autouse=True)
def no_sudo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SUDO_USER", raising=False)


def test_the_actor_is_the_user_of_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER", "somebody-else")
    monkeypatch.setenv("LOGNAME", "somebody-else")

    assert shell_actor() == f"shell:{pwd.getpwuid(os.getuid()).pw_name}"


def test_with_sudo_the_actor_is_who_called_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_USER", "anna")

    assert shell_actor() == "shell:anna"


def test_a_user_without_a_name_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 4294967)

    assert shell_actor() == "shell:4294967"


@pytest.mark.parametrize("name", ["a\nb", "\udcff", "x" * 300])
def test_a_strange_name_does_no_harm(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("SUDO_USER", name)

    assert shell_actor().isprintable()
    assert len(shell_actor()) <= 200


@pytest.mark.django_db
def test_a_booking_names_who_ran_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_USER", "anna")

    run("deposit", make_account(balance="0").pk, "5", "--reference", "bank 1")

    assert ours(LedgerEntry).get().actor == "shell:anna"


@pytest.mark.django_db
def test_the_audit_trail_names_who_ran_the_command(
    merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUDO_USER", "anna")

    run("rotate_key", merchant.client.pk)

    entry = recorded().get()
    assert (entry.actor, entry.actor_name) == (None, "shell:anna")
    page = signed_in(make_staff("audit.view_auditentry")).get(url(entry))
    assert "anna (Server)" in text_of(page)


@pytest.mark.django_db
def test_a_user_s_action_and_the_service_s_own_have_no_shell_name(merchant: Merchant) -> None:
    staff = make_staff()
    with acting_from_shell():
        record_action(actor=staff, action="key_issued", on=merchant.client)  # type: ignore[arg-type]
    record_action(actor=None, action="key_issued", on=merchant.client)  # type: ignore[arg-type]

    assert set(recorded().values_list("actor", "actor_name")) == {
        (staff.pk, ""),
        (None, ""),
    }

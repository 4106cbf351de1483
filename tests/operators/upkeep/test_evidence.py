"""Audit entries and roots leave the host in files, and a missing or changed entry is found."""

import io
import json
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.management import call_command
from django.utils import timezone

from audit.models import AuditAction, AuditEntry
from audit.services import record_action
from operators.upkeep import evidence
from tests.commands import refusal, run
from tests.concurrency.racing import without_triggers
from tests.factories import make_product
from wallets.evidence.roots import sign_ledger

pytestmark = pytest.mark.django_db(transaction=True)

MOVE = "UPDATE audit_auditentry SET created_at = created_at - interval '1 day' WHERE id = %s"


@pytest.fixture
def entries(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The only audit entries: one of yesterday and two of today, which has ended."""
    now = (timezone.now() + timedelta(days=2)).replace(hour=12)
    monkeypatch.setattr(evidence, "database_now", lambda: now)
    product = make_product()
    actions = (AuditAction.ADDED, AuditAction.CHANGED, AuditAction.SIGNED_IN)
    for action in actions:
        record_action(actor="shell:anna", action=action, on=product, note="why")
    pks = sorted(AuditEntry.objects.order_by("-pk").values_list("pk", flat=True)[:3])
    without_triggers("DELETE FROM audit_auditentry WHERE NOT id = ANY (%s)", pks)
    without_triggers(MOVE, pks[0])
    sign_ledger()
    return pks


def findings(*files: Path) -> list[str]:
    out, status = io.StringIO(), 0
    try:
        call_command("verify_evidence", *map(str, files), stdout=out)
    except SystemExit as ended:
        status = int(str(ended.code))
    found: list[str] = json.loads(out.getvalue())["findings"]
    assert status == bool(found)
    return found


def test_a_missing_changed_or_added_entry_is_found(entries: list[int], tmp_path: Path) -> None:
    written = run("export_evidence", tmp_path)["written"]
    assert len(written) == 3
    assert run("export_evidence", tmp_path)["written"] == []
    files = [tmp_path / name for name in written]
    assert findings(*files) == []

    first, changed, signed_in = entries
    without_triggers("UPDATE audit_auditentry SET note = 'other' WHERE id = %s", changed)
    without_triggers("DELETE FROM audit_auditentry WHERE id = ANY (%s)", [first, signed_in])
    record_action(actor="shell:eve", action=AuditAction.ADDED, on=make_product())
    added = AuditEntry.objects.latest("pk").pk
    found = "\n".join(findings(*files))
    for pk, what in [
        (first, "is missing in the database"),
        (signed_in, "is missing in the database"),
        (changed, "was changed"),
        (added, "was added later"),
    ]:
        assert any(f"audit entry {pk} " in line and what in line for line in found.splitlines())


def test_sign_ins_may_be_gone_after_their_time(
    entries: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [tmp_path / name for name in run("export_evidence", tmp_path)["written"]]
    without_triggers("DELETE FROM audit_auditentry WHERE id = ANY (%s)", entries[1:])
    later = timezone.now() + timedelta(days=93)
    monkeypatch.setattr(evidence, "database_now", lambda: later)

    (finding,) = findings(*files)
    assert f"audit entry {entries[1]} " in finding


def test_a_file_that_is_missing_or_cut_off_is_found(entries: list[int], tmp_path: Path) -> None:
    first, second, third = (tmp_path / name for name in run("export_evidence", tmp_path)["written"])
    sign_ledger()
    third.write_bytes(third.read_bytes() + second.read_bytes().splitlines(keepends=True)[-1])
    assert "is missing" in findings(first, third)[0]

    lines = second.read_text().splitlines(keepends=True)
    second.write_text("".join(lines[:1] + lines[2:]))
    assert "lacks entries" in findings(first, second, third)[0]
    second.write_text(lines[0] + lines[1][:-30])
    assert "is damaged" in refusal("verify_evidence", first, second)
    second.write_text("")
    assert "no day of evidence" in refusal("verify_evidence", second)

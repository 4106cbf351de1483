"""Copies outside the host: jobs leave marks, and people show that a copy opens."""

import io
import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from audit.models import AuditEntry
from core.database.key_ring import key_ring
from core.models import EncryptionKey
from operators.upkeep import copies
from operators.upkeep.models import Copy, CopyKind
from tests.commands import refusal, run

pytestmark = pytest.mark.django_db


def check_recovery() -> tuple[int, dict[str, Any]]:
    """The exit status, and each copy by its kind."""
    out, status = io.StringIO(), 0
    try:
        call_command("check_recovery", stdout=out)
    except SystemExit as ended:
        status = int(str(ended.code))
    return status, {copy["copy"]: copy for copy in json.loads(out.getvalue())["copies"]}


def test_a_worker_stores_the_marks_of_the_jobs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(copies, "MARKS", tmp_path)
    copies.note_marks()
    assert not Copy.objects.exists()

    mark = tmp_path / CopyKind.PURCHASE_LOG.value
    mark.write_text("web1\n")
    for seconds in (500, 90):
        at = timezone.now().timestamp() - seconds
        os.utime(mark, (at, at))
        copies.note_marks()
    (stored,) = Copy.objects.values_list("kind", "host", "seen_at")
    assert stored[:2] == ("purchase_log", "web1")
    assert stored[2].timestamp() == pytest.approx(at, abs=0.001)


def test_each_copy_is_red_until_it_is_seen_outside() -> None:
    key_ring()
    status, found = check_recovery()
    assert status == 1
    assert {copy["state"] for copy in found.values()} == {"red"}
    assert "deploy/backup/check-files" in found["files"]["advice"]

    for kind in CopyKind:
        assert run("check_recovery", "--seen", kind.value, "--host", "web1")["ok"]
    status, found = check_recovery()
    assert (status, {copy["state"] for copy in found.values()}) == (0, {"green"})

    old = timezone.now() - timedelta(hours=1)
    Copy.objects.create(kind=CopyKind.PURCHASE_LOG, host="gone", seen_at=old)
    status, found = check_recovery()
    assert (status, found["purchase_log"]["state"]) == (1, "red")
    assert [*found["purchase_log"]["last_seen"]] == ["gone", "web1"]
    assert run("check_recovery", "--forget", "gone")["ok"]
    (entry,) = AuditEntry.objects.filter(object_type="upkeep.copy")
    assert (entry.action, entry.reference) == ("deleted", "gone")
    assert entry.actor_name.startswith("shell:")
    assert "Nothing is known" in refusal("check_recovery", "--forget", "gone")


def test_files_with_other_keys_are_no_copy(settings: Any) -> None:
    key_ring()
    settings.CODE_ENCRYPTION_KEYS = [f"1:{'A' * 43}="]

    assert "key 1 differs" in refusal("check_recovery", "--seen", "files")
    assert not Copy.objects.filter(kind=CopyKind.FILES).exists()


def test_the_keys_of_a_copy_are_not_registered(settings: Any) -> None:
    """A copy may hold a key that was rotated out since."""
    key_ring()
    registered = set(EncryptionKey.objects.values_list("key_id", flat=True))
    settings.CODE_ENCRYPTION_KEYS = [*settings.CODE_ENCRYPTION_KEYS, f"9:{'A' * 43}="]

    assert run("check_recovery", "--seen", "files")["ok"]
    assert set(EncryptionKey.objects.values_list("key_id", flat=True)) == registered

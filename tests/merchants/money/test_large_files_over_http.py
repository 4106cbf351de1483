"""The program of the documentation downloads a large file over real HTTP, as a worker builds it."""

import csv
import os
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest

from merchants.docs.docs_content import BOOKS, SNIPPETS
from merchants.frame.prepared_files import build_file
from merchants.models import PreparedFile
from merchants.money.book_keys import issue_book_key
from tests.factories import make_account
from tests.live import LiveServer
from tests.merchants.ledger import book_many
from tests.merchants.people import make_member
from tests.tasks.running import wait_until
from wallets.evidence.roots import sign_ledger

pytestmark = pytest.mark.django_db(transaction=True)

NUMBER = 60_000  # 6 MB


def test_a_program_gets_a_large_file_in_parts(live: LiveServer, tmp_path: Path) -> None:
    account = make_account(balance="0")
    book_many(account, NUMBER, apart=timedelta(seconds=1))
    sign_ledger()
    environment = {
        "PATH": os.environ["PATH"],
        "VOUCHER_SITE": live.base_url,
        "VOUCHER_BOOK_KEY": issue_book_key(account=account, actor=make_member(account).user),
    }
    command = ["sh", str(SNIPPETS / BOOKS), "2026-01-01", "2199-12-31"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE
    ) as program:
        for name in ("statement.csv", "signed-statement.json"):
            asked = PreparedFile.objects.filter(name=name)
            wait_until(asked.exists, f"{name} is asked for")
            build_file(pk=asked.get().pk)
        assert program.wait(60) == 0, program.stderr and program.stderr.read()

    lines = list(csv.DictReader((tmp_path / "statement.csv").read_text().splitlines()))
    assert len(lines) == NUMBER
    assert [int(line["id"]) for line in lines] == sorted(int(line["id"]) for line in lines)
    assert (tmp_path / "signed-statement.json").stat().st_size > 10_000_000
    assert not list(tmp_path.glob("*.part"))

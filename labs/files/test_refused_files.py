"""Each of 12 kinds of files takes at most 20 s of processor time, in each of the five imports. The
files are as large as permitted, and refused for their last line or their size.

The sample is a hundredth of each file. With FILES=1 they are whole, and their times are the table
in docs/operate/sizing.md.
"""

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from django.db import connection

from catalogue.imports.code_import import check_codes
from catalogue.models import PriceList
from core.inputs import InputProblem
from labs.files import worst
from merchants.api_access.references import check_references
from operators.imports import price_list_file, rate_file
from operators.imports.catalogue_file import check_catalogue
from operators.imports.table_imports import check_table
from tests.factories import make_account, make_product

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("alone")]

SHARE = float(os.environ.get("FILES", "0.01"))
MOST_SECONDS = 20
FORMATS = {
    "CSV": worst.as_csv,
    "a table of texts": worst.with_table,
    "texts in cells": worst.as_cells,
    "elements with a prefix": worst.with_prefix,
}


def seconds_of_database() -> float:
    """The processor time of the process of PostgreSQL that serves this connection."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        pid = cursor.fetchone()[0]
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")


def seconds_of(check: Callable[[], object]) -> float:
    started, before = time.process_time(), seconds_of_database()
    with pytest.raises(InputProblem):
        check()
    return time.process_time() - started + seconds_of_database() - before


def test_each_file_is_refused_in_bounded_time(tmp_path: Path) -> None:
    product, account, path = make_product(id=7002), make_account(), tmp_path / "file"
    PriceList.objects.create(pk=7001, name="Gold", currency="USD")
    checks: dict[str, Callable[[], object]] = {
        "codes": lambda: check_codes(product_id=product.pk, path=path),
        "catalogue": lambda: check_catalogue(path=path),
        "references": lambda: check_references(account=account, data=path.read_bytes()),
        "prices in lists": lambda: check_table(price_list_file.KIND, path.read_bytes()),
        "exchange rates": lambda: check_table(rate_file.KIND, path.read_bytes()),
    }
    with connection.cursor() as cursor:  # while a file is made
        cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
    slow = []
    for importer, check in checks.items():
        files: dict[str, Callable[[], bytes]] = {
            "numbers": partial(worst.with_numbers, importer, SHARE, ""),
            "numbers with a prefix": partial(worst.with_numbers, importer, SHARE, "x:"),
            "empty rows": partial(worst.of_empty_rows, SHARE),
            "unused texts": partial(worst.of_unused_texts, SHARE),
        }
        for name, build in FORMATS.items():
            files[name] = partial(build, worst.lines_of(importer, SHARE, odd=False))
            files[f"{name}, odd values"] = partial(build, worst.lines_of(importer, SHARE, odd=True))
        for name, make in files.items():
            path.write_bytes(make())
            seconds = seconds_of(check)
            print(f"| {importer} | {name} | {seconds:.1f} s |", flush=True)  # noqa: T201
            if seconds > MOST_SECONDS:
                slow.append((importer, name, seconds))
    assert slow == []

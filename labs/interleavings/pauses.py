"""Lets a scheduler stop an SQL function of the service before each of its statements.

`paused_sql` installs the functions from their files, with a call of `schedule.pause` before each
statement that reads or writes a table, and before the end. A pause tells the client where it is (a
notice, which PostgreSQL sends at once) and waits for an advisory lock that the scheduler holds.

A pause changes nothing else: each statement of a plpgsql function takes a new snapshot anyway, and
ASSERT leaves FOUND as it is.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings

from tests.concurrency.racing import execute

NOTICE = "pause of a schedule"
SCHEMA = f"""
    CREATE SCHEMA schedule;
    CREATE FUNCTION schedule.pause(place text) RETURNS boolean LANGUAGE plpgsql AS $$
    DECLARE
        participant integer := nullif(current_setting('schedule.participant', true), '')::integer;
        step integer;
    BEGIN
        IF participant IS NOT NULL THEN
            step := nextval('schedule.steps_' || participant);
            RAISE NOTICE USING MESSAGE = format('{NOTICE} %s %s', step, place);
            PERFORM pg_advisory_lock(participant, step);
            PERFORM pg_advisory_unlock(participant, step);
        END IF;
        RETURN true;
    END $$;
"""
# Where the functions of a purchase touch rows that other requests may touch too.
IDEMPOTENCY = (
    "idempotency/sql/claim.sql",
    "idempotency/sql/stamp.sql",
    "idempotency/sql/release.sql",
    "idempotency/sql/end_attempt.sql",
    "idempotency/sql/store_response.sql",
)
PURCHASES = ("orders/sql/purchase_vouchers.sql", "orders/sql/purchase_topup.sql")
STOCK = (
    "catalogue/sql/offer.sql",
    "catalogue/sql/take_codes.sql",
    "topups/sql/offer.sql",
    "topups/sql/take_stock.sql",
)
MONEY = ("wallets/sql/post_entry.sql", "wallets/sql/paid_back.sql", "orders/sql/add.sql")
# Functions that are a transaction of their own: they also pause before their end, the commit.
WHOLE = frozenset({*IDEMPOTENCY, *PURCHASES} - {"idempotency/sql/stamp.sql"})

# The catalogue's products are left out: nobody changes them.
_STATEMENT = re.compile(
    r"\s+(PERFORM 1 FROM (?!catalogue_product)|SELECT|INSERT|UPDATE|DELETE|WITH)\b"
)
_END = re.compile(r"\s*(RETURN;|END \$\$;)")
_NO_CHANGE = re.compile(r"^(outcome|response|order_reference) := |^RAISE")  # before such an end
_BEFORE_STATEMENT = re.compile(r"(;|\b(BEGIN|THEN|ELSE|LOOP))$")

Weaknesses = Mapping[str, Sequence[tuple[str, str]]]


@contextmanager
def pauses() -> Iterator[None]:
    """Creates `schedule.pause` for the block."""
    execute(SCHEMA)
    try:
        yield
    finally:
        execute("DROP SCHEMA schedule CASCADE")


@contextmanager
def paused_sql(files: Sequence[str], weaknesses: Weaknesses | None = None) -> Iterator[None]:
    """Installs these SQL files with pauses.

    `weaknesses` names guards to replace, by file: (guard, replacement). A file with weaknesses
    that is not in `files` is installed without pauses.
    """
    weaknesses = weaknesses or {}
    changed = [*files, *(file for file in weaknesses if file not in files)]
    texts = {file: (Path(settings.BASE_DIR) / file).read_text() for file in changed}
    for file, original in texts.items():
        text = original
        for guard, replacement in weaknesses.get(file, ()):
            assert guard in text, f"{file} has changed: {guard!r} is not in it"
            text = text.replace(guard, replacement)
        execute(with_pauses(file, text) if file in files else text)
    try:
        yield
    finally:
        for original in texts.values():
            execute(original)


def with_pauses(file: str, text: str) -> str:
    """The text of an SQL file with a pause before each statement of its function."""
    name = re.sub(r"/sql/|\.sql", " ", file).strip().replace(" ", "_")
    lines: list[str] = []
    inside, before, number = False, "", 0
    for line in text.splitlines():
        code = line.partition("--")[0].rstrip()
        if code == "BEGIN":
            inside = True
        elif inside and _BEFORE_STATEMENT.search(before):
            keyword = _STATEMENT.match(code)
            if keyword:
                number += 1
                lines.append(f"ASSERT schedule.pause('{name}.{number} {keyword[1].split()[0]}');")
            elif file in WHOLE and _END.match(code) and not _NO_CHANGE.search(before):
                lines.append(f"ASSERT schedule.pause('{name}.end');")
        if code.startswith("END $$"):
            inside = False
        lines.append(line)
        before = code.strip() or before
    paused = "\n".join(lines)
    assert "schedule.pause" in paused, f"{file} has no statement to pause before"
    return paused

"""Amounts and days are written in the language of the reader."""

from datetime import UTC, date, datetime
from decimal import Decimal

from django.utils.translation import override

from core.formats import local_amount, local_day, local_moment


def test_amounts_and_days_follow_the_language() -> None:
    amounts = [Decimal(text) for text in ("25940.37", "-1234567.5", "0.0725", "999")]
    moment = datetime(2026, 11, 28, 9, 5, 0, tzinfo=UTC)
    shown = {}
    for language in ("en", "de", "xx"):
        with override(language):
            days = [local_day(date(2026, 2, 1)), local_moment(moment)]
            shown[language] = [*map(local_amount, amounts), local_amount(amounts[3], "USD"), *days]

    english = ["25,940.37", "-1,234,567.50", "0.0725", "999.00", "999.00 USD"]
    german = ["25.940,37", "-1.234.567,50", "0,0725", "999,00", "999,00 USD"]
    assert shown["en"] == [*english, "2026-02-01", "2026-11-28 09:05:00"]
    assert shown["de"] == [*german, "01.02.2026", "28.11.2026 09:05:00"]
    assert shown["xx"] == shown["en"]

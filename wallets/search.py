"""What the search field finds in `wallets`: bookings, by their reference."""

from config.finders import Finder
from wallets.models import LedgerEntry


def _describe(entry: LedgerEntry) -> tuple[str, str]:
    currency = entry.wallet.account.currency
    about = f"{entry.amount:+,.2f} {currency}, {entry.wallet.account}"
    return f"{entry.get_kind_display()} {entry.booking_reference}", about


FINDERS = [
    Finder(
        "Booking",
        LedgerEntry,
        lambda text: LedgerEntry.objects.filter(booking_reference=text).select_related(
            "wallet__account"
        ),
        _describe,
    )
]

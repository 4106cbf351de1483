"""What the search field finds in `catalogue`: voucher codes and products."""

from collections.abc import Iterable

from catalogue.codes import code_digester
from catalogue.models import Product, VoucherCode
from config.database.sealing import CannotOpen
from config.finders import Finder, named


def _of_code(code: str) -> Iterable[VoucherCode]:
    """The row of a code, found by its digest alone: the code itself is in no statement."""
    try:
        digest = code_digester()(code)
    except CannotOpen:
        return []
    codes = VoucherCode.objects.filter(digest=digest).defer("sealed", "digest")
    return codes.select_related("shelf__product", "shelf__variation__product")


def _describe_code(code: VoucherCode) -> tuple[str, str]:
    return f"Code {code.pk}", str(code.shelf)


FINDERS = [
    Finder("Voucher code", VoucherCode, _of_code, _describe_code, secret=True),
    Finder("Product", Product, lambda text: named(Product.objects.all(), text)),
]

"""Binding the codes of an order to it: a code moved to another order does not open.

A code is sealed on import, before its order exists, and it is sold inside one SQL function,
which cannot seal. So each order keeps `codes_mac`: a hash of the digests of its codes, keyed with a
secret that belongs to this order and client alone. Python derives the secret and passes it to the
purchase; it is stored nowhere (docs/decisions/0026-values-bound-to-rows.md).
"""

import hashlib
import hmac
from collections.abc import Sequence

from django.views.decorators.debug import sensitive_variables

from catalogue.models import VoucherCode
from catalogue.stock.codes import normal_form, open_as_json
from core.database.key_ring import key_ring
from core.database.sealing import CannotOpen

SHORTEST_NAMED = 6  # characters, without spaces and dashes


def order_secret(*, client_id: int, reference: str) -> bytes:
    """The secret of one order of one client. Raises CannotOpen if this process has wrong keys."""
    return key_ring().derive(b"order-codes", f"{client_id}:{reference}".encode())


def codes_mac(client_id: int, reference: str, digests: bytes) -> bytes:
    """The hash that orders/sql/purchase_vouchers.sql stores for an order of these codes. `digests`
    are those of all its codes, in order of sale, joined. Raises CannotOpen."""
    secret = order_secret(client_id=client_id, reference=reference)
    return hashlib.sha256(secret + hashlib.sha256(digests).digest()).digest()


def has_codes(client_id: int, reference: str, stored_mac: bytes, digests: bytes) -> bool:
    """Whether the order was sold with exactly the codes of these digests. Raises CannotOpen."""
    return hmac.compare_digest(codes_mac(client_id, reference, digests), stored_mac)


def open_codes(
    *,
    client_id: int,
    reference: str,
    stored_mac: bytes,
    sealed_codes: Sequence[bytes],
    digests: Sequence[bytes],
) -> list[dict[str, str]]:
    """All codes of an order as the API shows them, in order of sale. Raises CannotOpen if one of
    them was changed, or if they are not exactly the codes that the order was sold with."""
    if not has_codes(client_id, reference, stored_mac, b"".join(digests)):
        raise CannotOpen("the order was not sold with these codes")
    return open_as_json(sealed_codes, digests)


@sensitive_variables()
def names_a_code(text: str, *, order_id: int) -> bool:
    """Whether the text has a code or PIN of the order in it, with or without spaces and dashes.

    Not one shorter than SHORTEST_NAMED, which may be a word, and none if one does not open, which
    `reconcile --decrypt` reports.
    """
    rows = VoucherCode.objects.filter(order_id=order_id).values_list("sealed", "digest")
    sealed, digests = ([bytes(row[place]) for row in rows] for place in (0, 1))
    try:
        codes = open_as_json(sealed, digests)
    except CannotOpen:
        return False
    secrets = [one[name] for one in codes for name in ("code", "pin_code") if name in one]
    plain = normal_form(text).casefold()
    parts = (normal_form(secret).casefold() for secret in secrets)
    return any(len(part) >= SHORTEST_NAMED and part in plain for part in parts)

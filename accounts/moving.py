"""Accounts that left for another cell (docs/operate/cells.md).

Their programs buy in the other cell, which has a copy of all that they use. So a refusal of this
cell may be untrue, and a change in this cell would be lost.
"""

from django.db.models.functions import Now

from accounts.models import Account, ApiClient
from config.api.errors import ApiError, ErrorCode
from config.inputs import InputProblem

MOVED = (
    "The account is being moved. Nothing was charged here. Send the same request again, a purchase"
    " with the same `Idempotency-Key`, until you get a different response."
)


class AccountLeft(InputProblem):
    """A change of what the programs of an account use, after the account has left."""

    def __init__(self) -> None:
        super().__init__(
            "Nothing was changed: the account is moving to another cell, or has moved. Make the"
            " change there when it has arrived."
        )


def mark_left(account: Account) -> None:
    """Records that the account left. Waits for changes that `lock_unless_left` has let in."""
    Account.objects.filter(pk=account.pk, left_at=None).update(left_at=Now())


def has_left(account_id: int | None) -> bool:
    """Whether the account left for another cell."""
    left = Account.objects.filter(left_at__isnull=False)
    return account_id is not None and left.filter(pk=account_id).exists()


def account_of(client_id: int) -> int | None:
    """The id of the client's account."""
    return ApiClient.objects.values_list("account_id", flat=True).filter(pk=client_id).first()


def lock_unless_left(account_id: int | None) -> None:
    """Call it first in the transaction of a change of keys, clients or references: it locks the
    account's row, so the change is in the file that moves the account, or is refused. Raises
    AccountLeft."""
    if account_id is None:
        return
    account = Account.objects.select_for_update(no_key=True).filter(pk=account_id).first()
    if account is not None and account.left_at is not None:
        raise AccountLeft


def moved_error() -> ApiError:
    """The response to a program whose account left. A 4xx would say that nothing was bought, and
    the other cell may have bought under the same key."""
    return ApiError(ErrorCode.SERVER_ERROR, MOVED)

from decimal import Decimal
from typing import Any

from django.core.management.base import CommandParser

from core.command_line import JSONCommand, amount, shell_actor
from wallets.models import Wallet
from wallets.provisioning import create_account


class Command(JSONCommand):
    help = (
        "Creates a merchant's account with its wallet. A second run with the same name prints the"
        " first account and books nothing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")
        parser.add_argument(
            "--currency", default="USD", help="three capital letters; cannot be changed later"
        )
        parser.add_argument("--balance", type=amount, default=Decimal(0), metavar="100.00")
        parser.add_argument(
            "--no-wallet",
            action="store_true",
            help="the account can read the catalogue but not buy",
        )

    def answer(self, **options: Any) -> dict[str, Any]:
        account = create_account(
            name=options["name"],
            currency=options["currency"],
            balance=options["balance"],
            with_wallet=not options["no_wallet"],
            actor=shell_actor(),
        )
        wallet = Wallet.objects.filter(account=account).first()
        balance = wallet.balance if wallet else None
        return {"account_id": account.pk, "currency": account.currency, "balance": balance}

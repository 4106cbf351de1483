from typing import Any

from django.core.management.base import CommandParser

from catalogue.reference_links import link_reference
from core.command_line import JSONCommand, whole_number


class Command(JSONCommand):
    help = "Links a merchant reference to the shelf of a product or variation."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("account_id", type=whole_number)
        parser.add_argument("reference")
        parser.add_argument("product_id", type=whole_number)
        parser.add_argument("--variation", type=whole_number, metavar="ID")

    def answer(self, **options: Any) -> dict[str, Any]:
        link = link_reference(
            account_id=options["account_id"],
            reference=options["reference"],
            product_id=options["product_id"],
            variation_id=options["variation"],
            actor=None,
        )
        return {
            "account_id": link.account_id,
            "reference": link.reference,
            "product_id": link.shelf.product_id,
            "variation_id": link.shelf.variation_id,
        }

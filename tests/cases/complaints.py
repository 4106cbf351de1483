"""Shared by the tests of cases: an order with bad codes, and people who decide."""

from dataclasses import dataclass

from django.contrib.auth.models import User

from cases.models import Case
from cases.services import open_case
from catalogue.models import Product, VoucherCode
from orders.models import Order
from tests.factories import Merchant, make_merchant, make_product
from tests.merchants.people import make_member

PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)


@dataclass
class Complaint:
    """An order of codes at 10.00 each, and a member who complains."""

    merchant: Merchant
    product: Product
    order: Order
    member: User

    @property
    def codes(self) -> list[VoucherCode]:
        return list(VoucherCode.objects.filter(order_id=self.order.pk).order_by("position"))

    def open(self, place: int | None = 0, text: str = "It was used before.") -> Case:
        """Opens a case about the code at this place, or about the order."""
        code = None if place is None else self.codes[place]
        return open_case(order=self.order, code=code, actor=self.member, text=text)


def make_complaint(*, quantity: int = 2, stock: int = 2, balance: str = "100.00") -> Complaint:
    """An order of so many codes; `stock` codes are left on the shelf."""
    merchant = make_merchant(balance=balance)
    product = make_product(price="10.00", codes=quantity + stock)
    answer = merchant.buy(product_id=product.pk, quantity=quantity)
    order = Order.objects.get(reference=answer.json()["data"]["reference"])
    return Complaint(merchant, product, order, make_member(merchant.account).user)

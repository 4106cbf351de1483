"""The back office for staff, one module per area of work."""

from operators.admin import catalogue, codes, merchants, money, orders, staff, system

__all__ = ["catalogue", "codes", "merchants", "money", "orders", "staff", "system"]

"""Celery tasks of this app. Each may safely run twice."""

from celery import shared_task

from orders import sales_counting
from orders.margins import counting, stock


@shared_task
def count_sales() -> int:
    """Adds new orders to the daily sales."""
    return sales_counting.count_sales()


@shared_task
def count_margins() -> int:
    """Adds new orders, refunds and credits to the margin figures."""
    return counting.count_margins()


@shared_task
def count_stock() -> int:
    """Counts the codes in stock of each batch today."""
    return stock.count_stock()

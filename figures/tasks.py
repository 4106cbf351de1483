"""Celery tasks of this app. Each may safely run twice."""

from celery import shared_task

from figures import margin_counting, sales_counting, stock_counting


@shared_task
def count_sales() -> int:
    """Adds new orders to the daily sales."""
    return sales_counting.count_sales()


@shared_task
def count_margins() -> int:
    """Adds new orders, refunds and credits to the margin figures."""
    return margin_counting.count_margins()


@shared_task
def count_stock() -> int:
    """Counts the codes in stock of each batch today."""
    return stock_counting.count_stock()

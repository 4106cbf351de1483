"""Celery tasks of this app. Each may safely run twice."""

from celery import shared_task

from orders import sales_counting


@shared_task
def count_sales() -> int:
    """Adds new orders to the daily sales."""
    return sales_counting.count_sales()

"""Signals that higher apps listen to. Sent after the commit, with `fulfilment_id`.

Django logs a listener that fails, and the request goes on. A sweep must find what it missed.
"""

from django.dispatch import Signal

fulfilment_opened = Signal()
fulfilment_moved = Signal()
fulfilment_refunded = Signal()

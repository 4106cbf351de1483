"""What others may listen to; sent after the commit, with the fulfilment's id as `fulfilment_id`.

A listener that fails is logged and disturbs nobody: what it missed must be found by a sweep.
"""

from django.dispatch import Signal

fulfilment_opened = Signal()
fulfilment_moved = Signal()

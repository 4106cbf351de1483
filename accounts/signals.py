"""A signal for apps above `accounts`, which it does not know.

It is sent in the transaction of the change, so what a receiver writes is committed with it.
"""

from django.dispatch import Signal

# A key was issued, rotated or revoked. Arguments: `client`, `actor` (None for a command on the
# server), `change` (a sentence) and `facts` (names and values for people, without secrets).
key_changed = Signal()

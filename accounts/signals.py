"""A signal for apps above `accounts`, which it does not know.

It is sent in the transaction of the change, so what a receiver writes is committed with it.
"""

from django.dispatch import Signal

# A key was started, issued, rotated or revoked, or staff or a command changed a client or switched
# an account. Arguments: `account`, `actor` (None for a command on the server), `change` (a
# sentence) and `facts` (names and values for people, without secrets).
access_changed = Signal()

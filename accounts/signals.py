"""What others may listen to: keys changed by a command on the server.

Sent in the transaction of the change, with the client as `client` and the key's `prefix`: a
listener that fails undoes the change. The back office names who acts itself.
"""

from django.dispatch import Signal

key_issued = Signal()
key_rotated = Signal()
key_revoked = Signal()

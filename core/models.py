"""The encryption keys that the service has used (core/database/key_ring.py)."""

from django.db import models


class EncryptionKey(models.Model):
    """One entry of CODE_ENCRYPTION_KEYS that some process has had. The key itself is not stored.

    `wrapped` is the root secret, sealed with this key. A process that can open it has the right key
    under this id.

    `sealing_since` is when a process first had it as the first key, which seals. Until then no
    value is sealed with it, and a process may lack it.
    """

    key_id = models.PositiveSmallIntegerField(primary_key=True)
    wrapped = models.BinaryField()
    sealing_since = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"encryption key {self.pk}"

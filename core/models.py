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


class RootFingerprint(models.Model):
    """One row: a value derived from the root secret, which every process and `reconcile` compare.

    While it exists, an empty table of keys is no new service: the root secret was lost.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    fingerprint = models.BinaryField()

    class Meta:
        default_permissions = ()
        constraints = [
            models.CheckConstraint(condition=models.Q(pk=1), name="core_rootfingerprint_is_one")
        ]

    def __str__(self) -> str:
        return "fingerprint of the root secret"

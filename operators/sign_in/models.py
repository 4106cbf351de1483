"""The company accounts of staff."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class CompanyIdentity(models.Model):
    """The company account with which a member of staff signs in: a subject at an issuer.

    Neither the name nor the email identifies a person: both can change hands. `email` is the
    verified email of the last sign-in, for people to read.
    """

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="company_identity"
    )
    issuer = models.CharField(max_length=255)
    subject = models.CharField(max_length=255)
    email = models.EmailField(blank=True, default="")
    linked_at = models.DateTimeField(db_default=Now(), editable=False)
    signed_in_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        verbose_name_plural = "company identities"
        permissions = [("manage_staff", "Can add staff, give and make roles, and end access")]
        constraints = [
            models.UniqueConstraint(
                name="sign_in_company_identity_once", fields=["issuer", "subject"]
            ),
        ]

    def __str__(self) -> str:
        return f"company account of {self.user}"

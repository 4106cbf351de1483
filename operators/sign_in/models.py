"""The company accounts of staff, and changes for which two people must do the same."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from core.texts import lazy

# Why a company account is not let in. The person reads it, and the audit trail keeps it.
NO_ROLE = lazy(
    "Your company account has no role in this service. Ask the people who manage company accounts"
    " for one."
)
SWITCHED_OFF = lazy("Your account in this service is switched off. Ask an administrator.")
NAME_TAKEN = lazy(
    "An account with your name or email exists here, and it is not linked to your company account."
    " Ask an administrator."
)
NO_NAME = lazy(
    "Your company account has no verified email, and no other name, that this service could use as"
    " your name: letters, digits and @ . + - _ only. Ask the people who manage company accounts."
)
UNREADABLE = lazy(
    "Your company account has a claim that this service cannot read: %(claim)s. Ask the people who"
    " manage company accounts."
)


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


class TwoPersonChange(models.Model):
    """A change that one person asked for, until another one asks for the same (second_person.py).

    what: the change, such as `the role Finance`. about: the person whom it is about; None for a
        change of a role or of a limit. ended_at: when it was withdrawn or rejected. right: the
        permission of those who may agree; empty if pages do not list the change, as that of an
        import. data: what pages show of it (asked_changes.py).
    """

    what = models.CharField(max_length=500)
    about = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    asked_at = models.DateTimeField(db_default=Now())
    approved_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    approved_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    right = models.CharField(max_length=100, default="")
    data = models.JSONField(default=dict)

    class Meta:
        default_permissions = ()
        indexes = [
            models.Index(
                name="sign_in_change_waits",
                fields=["asked_at"],
                condition=Q(approved_at=None),
            )
        ]
        constraints = [
            models.UniqueConstraint(
                name="sign_in_change_waits_once",
                fields=["about", "what"],
                condition=Q(approved_at=None),
                nulls_distinct=False,
            ),
            models.CheckConstraint(
                name="sign_in_change_approved_by_another",
                condition=Q(approved_by=None, approved_at=None)
                | (
                    Q(approved_by__isnull=False, approved_at__isnull=False)
                    & ~Q(approved_by=F("asked_by"))
                ),
            ),
        ]

    def __str__(self) -> str:
        return self.what

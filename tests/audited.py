"""The audit entries that a test is about: not those of creating people and signing them in."""

from django.db.models import QuerySet

from audit.models import AuditEntry


def recorded() -> QuerySet[AuditEntry]:
    """Every audit entry that is not about a user or a group."""
    return AuditEntry.objects.exclude(object_type__in=["auth.user", "auth.group"])

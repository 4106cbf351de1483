"""The audit trail without what the making of people and browsers leaves there."""

from django.db.models import QuerySet

from audit.models import AuditEntry


def recorded() -> QuerySet[AuditEntry]:
    """Every audit entry that is not about a user or a group."""
    return AuditEntry.objects.exclude(object_type__in=["auth.user", "auth.group"])

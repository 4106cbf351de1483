"""The audit entries that a test is about: not those of what it makes before, with SQL."""

from django.db.models import QuerySet

from audit.models import AuditEntry


def recorded() -> QuerySet[AuditEntry]:
    """Every audit entry that is not about a user, a group, or a price that SQL set."""
    entries = AuditEntry.objects.exclude(object_type__in=["auth.user", "auth.group"])
    return entries.exclude(actor_name__startswith="sql:")

"""The periodic tasks that beat queues, with their intervals."""

from typing import Any

# After an outage, workers drop periodic tasks that were queued more than five minutes ago.
_EXPIRES = {"expires": 300}
# Runs of a count one after the other slow down the purchases beside them.
_EXPIRES_SOON = {"expires": 60}


def beat_schedule(*, deletes_old_data: bool) -> dict[str, dict[str, Any]]:
    """CELERY_BEAT_SCHEDULE: each periodic task with its interval in seconds."""
    schedule: dict[str, dict[str, Any]] = {
        "cleanup-idempotency": {
            "task": "idempotency.tasks.cleanup_idempotency",
            "schedule": 60,
            "options": _EXPIRES,
        },
        "delete-request-records": {
            "task": "accounts.tasks.delete_request_records",
            "schedule": 60,
            "options": _EXPIRES,
        },
        "sweep-balance-alerts": {
            "task": "merchants.tasks.sweep_balance_alerts",
            "schedule": 30,
            "options": _EXPIRES,
        },
        "sweep-reports": {
            "task": "merchants.tasks.sweep_reports",
            "schedule": 600,
            "options": _EXPIRES,
        },
        "sweep-files": {
            "task": "merchants.tasks.sweep_files",
            "schedule": 60,
            "options": _EXPIRES,
        },
        "sweep-spending-limits": {
            "task": "merchants.tasks.sweep_spending_limits",
            "schedule": 60,
            "options": _EXPIRES,
        },
        "sweep-cases": {
            "task": "merchants.tasks.sweep_cases",
            "schedule": 30,
            "options": _EXPIRES,
        },
        "sweep-transfers": {
            "task": "merchants.tasks.sweep_transfers",
            "schedule": 60,
            "options": _EXPIRES,
        },
        "clear-sessions": {"task": "merchants.tasks.clear_sessions", "schedule": 86_400},
        "hold-expired-codes": {
            "task": "catalogue.tasks.hold_expired_codes",
            "schedule": 60,
            "options": _EXPIRES,
        },
        "trace-codes": {
            "task": "catalogue.tasks.trace_codes",
            "schedule": 30,
            "options": _EXPIRES,
        },
        "hold-repeats": {
            "task": "catalogue.tasks.hold_repeats",
            "schedule": 60,
            "options": _EXPIRES,
        },
        "sweep-emails": {
            "task": "merchants.tasks.sweep_emails",
            "schedule": 60,
            "options": _EXPIRES,
        },
        "reconcile-nightly": {
            "task": "operators.upkeep.tasks.reconcile_nightly",
            "schedule": 600,
            "options": _EXPIRES,
        },
        # Once an hour it asks whether the newest signed root is a day old.
        "sign-ledger": {
            "task": "wallets.tasks.sign_ledger",
            "schedule": 3600,
            "options": _EXPIRES,
        },
        "expire-approvals": {
            "task": "wallets.tasks.expire_approvals",
            "schedule": 600,
            "options": _EXPIRES,
        },
        # It asks whether a day has ended, so it also catches up.
        "close-days": {
            "task": "wallets.tasks.close_days",
            "schedule": 600,
            "options": _EXPIRES,
        },
        "sweep-announcements": {
            "task": "operators.telegram.tasks.sweep_announcements",
            "schedule": 10,
            "options": _EXPIRES,
        },
        "count-sales": {
            "task": "figures.tasks.count_sales",
            "schedule": 10,
            "options": _EXPIRES_SOON,
        },
        "count-margins": {
            "task": "figures.tasks.count_margins",
            "schedule": 10,
            "options": _EXPIRES_SOON,
        },
        "count-stock": {
            "task": "figures.tasks.count_stock",
            "schedule": 3600,
            "options": _EXPIRES,
        },
        "sweep-warnings": {
            "task": "operators.warnings.tasks.sweep_warnings",
            "schedule": 60,
            "options": _EXPIRES,
        },
        "post-warnings": {
            "task": "operators.warnings.tasks.post_warnings",
            "schedule": 15,
            "options": _EXPIRES,
        },
        "sweep-imports": {
            "task": "operators.imports.tasks.sweep_imports",
            "schedule": 30,
            "options": _EXPIRES,
        },
        "escalate-stale-claims": {
            "task": "topups.tasks.escalate_stale_claims",
            "schedule": 60,
            "options": _EXPIRES,
        },
        "release-claims-of-leavers": {
            "task": "topups.tasks.release_claims_of_leavers",
            "schedule": 60,
            "options": _EXPIRES,
        },
        "sweep-refunds": {
            "task": "topups.tasks.sweep_refunds",
            "schedule": 30,
            "options": _EXPIRES,
        },
    }
    if deletes_old_data:
        schedule["delete-old-data"] = {
            "task": "operators.upkeep.tasks.delete_old_data",
            "schedule": 86_400,
            "options": _EXPIRES,
        }
    return schedule

"""The days after which old data is deleted (docs/operate/retention.md)."""

from core.env import StrictEnv, stop_start


def retention_days(env: StrictEnv) -> dict[str, int]:
    """RETENTION_DAYS. An invalid value ends the process."""
    days = {
        "player_ids": env.int("RETENTION_PLAYER_ID_DAYS", 730),
        "case_files": env.int("RETENTION_CASE_FILE_DAYS", 730),
        "delivery_files": env.int("RETENTION_DELIVERY_FILE_DAYS", 730),
        "emails": env.int("RETENTION_EMAIL_DAYS", 90),
        "invitations": env.int("RETENTION_INVITATION_DAYS", 365),
        "sessions": env.int("RETENTION_SESSION_DAYS", 1),
        "sign_ins": env.int("RETENTION_SIGN_IN_DAYS", 90),
        "read_audit": env.int("RETENTION_READ_AUDIT_DAYS", 730),
        "runs": env.int("RETENTION_RUN_DAYS", 365),
        "requests": env.int("RETENTION_REQUEST_DAYS", 30),
    }
    # The database deletes no player id and no audit entry earlier (topups/sql/guards.sql,
    # audit/sql/append_only.sql). accounts/sign_in/limits.py and merchants/email/outbox.py look back
    # that far at the other two.
    _at_least("RETENTION_PLAYER_ID_DAYS", days["player_ids"], 30)
    _at_least("RETENTION_READ_AUDIT_DAYS", days["read_audit"], 90)
    _at_least("RETENTION_SIGN_IN_DAYS", days["sign_ins"], 90)
    _at_least("RETENTION_EMAIL_DAYS", days["emails"], 7)
    return days


def _at_least(variable: str, days: int, least: int) -> None:
    if days < least:
        stop_start(variable, f"must be at least {least}.")

"""The days after which old data is deleted (docs/operate/retention.md)."""

from core.environment.env import StrictEnv

CENTURY = 36_500


def retention_days(env: StrictEnv) -> dict[str, int]:
    """RETENTION_DAYS. An invalid value ends the process.

    Reasons for `least`: the database deletes no younger player id and no younger audit entry
    (topups/sql/guards.sql, audit/sql/append_only.sql). accounts/sign_in/limits.py and
    merchants/email/outbox.py look back that far at sign-ins and emails.
    """
    return {
        "player_ids": env.number("RETENTION_PLAYER_ID_DAYS", 730, least=30, most=CENTURY),
        "case_files": env.number("RETENTION_CASE_FILE_DAYS", 730, most=CENTURY),
        "delivery_files": env.number("RETENTION_DELIVERY_FILE_DAYS", 730, most=CENTURY),
        "emails": env.number("RETENTION_EMAIL_DAYS", 90, least=7, most=CENTURY),
        "invitations": env.number("RETENTION_INVITATION_DAYS", 365, most=CENTURY),
        "sessions": env.number("RETENTION_SESSION_DAYS", 1, most=CENTURY),
        "sign_ins": env.number("RETENTION_SIGN_IN_DAYS", 90, least=90, most=CENTURY),
        "read_audit": env.number("RETENTION_READ_AUDIT_DAYS", 730, least=90, most=CENTURY),
        "runs": env.number("RETENTION_RUN_DAYS", 365, most=CENTURY),
        "requests": env.number("RETENTION_REQUEST_DAYS", 30, most=CENTURY),
    }

"""The part of `core`: the rights to the tables of Django and to its own."""

from core.backoffice.declarations import BackOffice, Rights

BACK_OFFICE = BackOffice(
    rights={
        # `migrate` fills these three.
        "auth_permission": Rights.READ,
        "django_content_type": Rights.READ,
        "django_migrations": Rights.READ,
        "core_encryptionkey": Rights.CHANGE,
        "django_admin_log": Rights.READ,
    }
)

"""The part of `config`: the rights to the tables of Django and to its own."""

from config.backoffice.declarations import BackOffice, Rights

BACK_OFFICE = BackOffice(
    rights={
        # `migrate` fills these three.
        "auth_permission": Rights.READ,
        "django_content_type": Rights.READ,
        "django_migrations": Rights.READ,
        "config_encryptionkey": Rights.CHANGE,
        "django_admin_log": Rights.READ,
    }
)

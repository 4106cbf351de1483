"""The part of `core`: the rights to the tables of Django and to its own, and the alerts about every
request and task."""

from core.backoffice.declarations import Alert, BackOffice, Rights, Severity

BACK_OFFICE = BackOffice(
    rights={
        # `migrate` fills these three.
        "auth_permission": Rights.READ,
        "django_content_type": Rights.READ,
        "django_migrations": Rights.READ,
        "core_encryptionkey": Rights.CHANGE,
        "django_admin_log": Rights.READ,
    },
    alerts=[
        Alert(
            "VoucherServerErrors",
            Severity.CRITICAL,
            "2m",
            "{{ $value | humanizePercentage }} of the responses have a status of 500 or more.",
            'sum(rate(voucher_requests_total{status=~"5.."}[5m]))'
            " / sum(rate(voucher_requests_total[5m])) > 0.01",
        ),
        Alert(
            "VoucherTasksFail",
            Severity.WARNING,
            "5m",
            "The task {{ $labels.task }} failed {{ $value | humanize }} times in 15 minutes.",
            'sum by (task) (increase(voucher_task_seconds_count{state="FAILURE"}[15m])) > 3',
        ),
    ],
)

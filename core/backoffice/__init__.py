"""The part of `core`: the rights to the tables of Django and to its own, the check of the root
secret, and the alerts about every request and task."""

from core.backoffice.declarations import Alert, BackOffice, Check, Rights, Severity
from core.database.key_ring import root_problem
from core.texts import gettext_noop

CHECKS = [
    Check(
        gettext_noop("the root secret of all sealed values is there, and no other one"),
        "SELECT problem FROM unnest(%(problems)s::text[]) AS problem",
        lambda: {"problems": [problem for problem in [root_problem()] if problem]},
    ),
]

BACK_OFFICE = BackOffice(
    checks=CHECKS,
    triggers=[
        "core_encryptionkey_one_stays",
        "core_encryptionkey_wraps_one_secret",
        "core_rootfingerprint_stays",
    ],
    rights={
        # `migrate` fills these three.
        "auth_permission": Rights.READ,
        "django_content_type": Rights.READ,
        "django_migrations": Rights.READ,
        "core_encryptionkey": Rights.CHANGE,
        "core_rootfingerprint": Rights.APPEND,
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

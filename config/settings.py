"""Every setting of the service, read once from the environment.

Commands, workers, and a web process that serves everything use this module. In production, web
processes use `settings_api` or `settings_pages`.

Production sets `DATABASE_URL` and the other variables (docs/operate/configure.md). Without
`DATABASE_URL`, the settings come from `var/embedded.env`, which `make run` writes, so a command in
another shell uses the same embedded database.
"""

from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from django.conf.locale import LANG_INFO

from config.retention import retention_days
from config.schedule import beat_schedule
from config.theme import UNFOLD as UNFOLD  # noqa: PLC0414  a setting
from core.api.openapi_settings import OPENAPI_SETTINGS
from core.database.connections import database_settings
from core.environment.addresses import RABBITMQ
from core.environment.env import StrictEnv
from core.environment.stop import stop_start
from core.telemetry.error_reports import error_reporter
from core.telemetry.logs import logging_config
from core.version import VERSION
from operators.sign_in.company.settings import company_sign_in

BASE_DIR = Path(__file__).resolve().parent.parent
VAR_DIR = BASE_DIR / "var"

A_WEEK = 7 * 24 * 60  # in minutes
A_YEAR = 366 * 24  # in hours

env = StrictEnv()
if "DATABASE_URL" not in env:
    env.read_env(VAR_DIR / "embedded.env")

# Secrets. The system checks refuse to start with an empty one (core/checks.py).
SECRET_KEY = env.str("DJANGO_SECRET_KEY", "")
# Other keys whose signatures are accepted (docs/operate/rotate-keys.md).
SECRET_KEY_FALLBACKS = env.list("DJANGO_SECRET_KEY_FALLBACKS", default=[])
CODE_ENCRYPTION_KEYS = env.list("CODE_ENCRYPTION_KEYS", default=[])

DEBUG = False
ALLOWED_HOSTS = env.list("DJANGO_ALLOWED_HOSTS", default=[])
CSRF_TRUSTED_ORIGINS = env.list("DJANGO_CSRF_TRUSTED_ORIGINS", default=[])
# Networks of the reverse proxies. X-Forwarded-For is read only from these addresses. The proxies
# must set X-Forwarded-Proto themselves.
TRUSTED_PROXIES = env.list("TRUSTED_PROXIES", default=[])
# Whether browsers and merchants use HTTPS. Only the embedded environment switches it off.
HTTPS = env.bool("DJANGO_HTTPS", True)

INSTALLED_APPS = [
    "unfold",
    "unfold.contrib.filters",
    # Only the URLs load the admin's pages: commands and workers do without them.
    "django.contrib.admin.apps.SimpleAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "django_structlog",
    "axes",
    "django_otp",
    "django_otp_webauthn",
    "core.apps.CoreConfig",
    "audit",
    "accounts",
    "catalogue",
    "wallets",
    "idempotency",
    "topups",
    "orders",
    "cases",
    "figures",
    "merchants",
    "operators.frame",
    "operators.telegram",
    "operators.sign_in",
    "operators.imports",
    "operators.warnings",
    "operators.upkeep",
    "operators.admin",
]

MIDDLEWARE = [
    "core.http.request_metrics.RequestMetricsMiddleware",
    "accounts.api_access.request_records.RequestRecordMiddleware",
    "core.http.request_log.RequestLogMiddleware",
    "accounts.middleware.TrustedProxyMiddleware",
    "core.http.middleware.ApiOverHttpsMiddleware",
    "core.http.body_limits.BodyLimitMiddleware",  # before the CSRF check, which reads the body
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "core.http.middleware.PageHeadersMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "core.http.middleware.PageGZipMiddleware",
    "accounts.sign_in.sessions.SessionMiddleware",
    "core.http.hosts.AllowedHostsMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django_otp.middleware.OTPMiddleware",
    "accounts.middleware.ActorMiddleware",
    "accounts.preferences.time_zones.TimeZoneMiddleware",
    "accounts.preferences.languages.LanguageMiddleware",
    "operators.sign_in.middleware.StaffSecondFactorMiddleware",
    "merchants.middleware.MemberSecondFactorMiddleware",
    "operators.frame.reader.ReaderMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "axes.middleware.AxesMiddleware",  # last: replaces the response to a locked-out sign-in
]

# The part of MIDDLEWARE that a worker needs to build a file as a request would (merchants/frame/).
FILE_MIDDLEWARE = [
    "accounts.preferences.time_zones.TimeZoneMiddleware",
    "accounts.preferences.languages.LanguageMiddleware",
    "operators.frame.reader.ReaderMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]

ROOT_URLCONF = "config.urls"
API_URLCONF = "config.urls_api"  # also in a process for pages, which does not serve them
WSGI_APPLICATION = "config.wsgi.application"
TASK_APPLICATION = "config.celery.app"
APPEND_SLASH = False  # an unknown API path returns 404, never a redirect

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "builtins": ["django.templatetags.i18n"],
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "django.template.context_processors.tz",
            ],
        },
    },
]

# Database. ATOMIC_REQUESTS is off: an idempotency claim must be visible to a concurrent retry, and
# a failure after the purchase must keep the order (docs/architecture.md, "A purchase").
_database = env.postgres("DATABASE_URL")
DATABASES = {"default": database_settings(_database)}
# SERVICE_ROLE is the database role of the service. MIGRATION_DATABASE connects as the owner of the
# tables; only `migrate` uses it. Without MIGRATION_DATABASE_URL, one role does both
# (docs/operate/database-roles.md).
SERVICE_ROLE = _database["USER"]
MIGRATION_DATABASE = env.postgres("MIGRATION_DATABASE_URL")
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Cache: holds the rate-limit counters and nothing that money depends on.
REDIS_URL = env.redis("REDIS_URL")
# In seconds. A failing cache delays one request of a process by one timeout. The process then skips
# the cache for some seconds (core/cache.py).
CACHE_TIMEOUTS = {"socket_connect_timeout": 0.25, "socket_timeout": 0.25}
if REDIS_URL:
    CACHES = {
        "default": {
            "BACKEND": "core.cache.ImpatientRedisCache",
            "LOCATION": REDIS_URL,
            "OPTIONS": {
                **CACHE_TIMEOUTS,
                "pool_class": "core.cache.ImpatientPool",
                "serializer": "core.cache.JSONSerializer",
            },
        },
        "counters": {
            "BACKEND": "core.cache.CountingCache",
            "LOCATION": REDIS_URL,
            "OPTIONS": CACHE_TIMEOUTS,
        },
    }
else:
    CACHES = {
        alias: {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": alias}
        for alias in ("default", "counters")
    }
# django-ratelimit. Its app is not installed: it only checks that it knows the cache.
RATELIMIT_USE_CACHE = "counters"
# A local counter that ends between two steps of a count refuses no request.
RATELIMIT_FAIL_OPEN = True
# Number of web processes on this host, 0 when unknown. Granian reads the same variable.
WEB_WORKERS = env.number("GRANIAN_WORKERS", 0, most=256)
# voucher.E011 checks what otp_webauthn.E031 checks.
SILENCED_SYSTEM_CHECKS = ["otp_webauthn.E031"]

# Celery. Every task is safe to run twice, so a message is acknowledged only after its task ended.
CELERY_BROKER_URL = env.broker("CELERY_BROKER_URL", REDIS_URL)
# Celery would not compare the certificate of a broker with its host.
if CELERY_BROKER_URL.startswith("rediss:"):
    CELERY_BROKER_USE_SSL: dict[str, str | None] = {"ssl_cert_reqs": "required"}
elif CELERY_BROKER_URL.startswith("amqps:"):
    CELERY_BROKER_USE_SSL = {"server_hostname": urlsplit(CELERY_BROKER_URL).hostname}
# RabbitMQ only: a quorum queue is on three hosts, and survives the loss of one.
_quorum = env.bool("CELERY_QUORUM_QUEUES", False)
_rabbitmq = urlsplit(CELERY_BROKER_URL).scheme in RABBITMQ
if _quorum and not _rabbitmq:
    stop_start("CELERY_QUORUM_QUEUES", "is for RabbitMQ, which CELERY_BROKER_URL does not name.")
CELERY_TASK_DEFAULT_QUEUE_TYPE = "quorum" if _quorum else "classic"
CELERY_TASK_CREATE_MISSING_QUEUE_TYPE = CELERY_TASK_DEFAULT_QUEUE_TYPE
# Imports workers read the files that staff upload, and build large files to download. Both take
# minutes. Refunds, emails and announcements in the queue `celery` never wait for a file. Celery
# takes from both queues in turn, so an import waits for one download at most.
CELERY_TASK_ROUTES = {
    "operators.imports.tasks.run_import": {"queue": "imports"},
    "merchants.tasks.build_file": {"queue": "files"},
}
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False
CELERY_TASK_SOFT_TIME_LIMIT = 25
CELERY_TASK_TIME_LIMIT = 30
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None  # a worker retries without end
CELERY_BROKER_CONNECTION_TIMEOUT = 2
CELERY_BROKER_HEARTBEAT = 20  # RabbitMQ only; Redis and Valkey use health_check_interval
CELERY_BROKER_TRANSPORT_OPTIONS = {}
if CELERY_BROKER_URL.startswith("redis"):
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        # The broker redelivers a dead worker's messages after this timeout, which must exceed the
        # time limit of a task and the wait of a retry.
        "visibility_timeout": 45,
        "unacked_restore_interval": 2,
        "unacked_restore_throttle": 1,
        # Without these, a write to a dead connection blocks forever.
        "socket_connect_timeout": 2,
        "socket_timeout": 5,
        "health_check_interval": 5,
    }
elif _rabbitmq:
    # Each publish waits for RabbitMQ's answer. A connection that was opened while the leader of a
    # quorum queue was lost refuses every message until that host is back: Celery hears of it, and
    # opens another connection.
    CELERY_BROKER_TRANSPORT_OPTIONS = {"confirm_publish": True}
    # While a worker with one process builds a file, it holds the next message. After 30 minutes,
    # RabbitMQ closes the channel. With this, the worker opens another one and does not end.
    CELERY_BROKER_CHANNEL_ERROR_RETRY = True
CELERY_BEAT_SCHEDULER = "config.beat.Scheduler"
# A clock that is set back while the next run is computed costs one such sleep, not five minutes.
CELERY_BEAT_MAX_LOOP_INTERVAL = 5
CELERY_BEAT_SCHEDULE = beat_schedule(
    deletes_old_data=env.bool("RETENTION_NIGHTLY", False),
)

# Idempotency. The contract fixes these times ("Idempotency record").
IDEMPOTENCY_IN_PROGRESS_SECONDS = 300
IDEMPOTENCY_KEEP_COMPLETED_DAYS = 7
IDEMPOTENCY_KEEP_UNFINISHED_DAYS = 1

# The days after which old data is deleted, by kind (docs/operate/retention.md).
RETENTION_DAYS = retention_days(env)

# A price that falls by more percent waits for a second member of staff (figures/low_prices.py).
PRICE_FALL_PERCENT = env.number("PRICE_FALL_PERCENT", 30, most=100)

# The desk. An open top-up is coloured as waiting, then as late, after these minutes.
DESK_WAITING_MINUTES = env.number("DESK_WAITING_MINUTES", 10, most=A_WEEK)
DESK_LATE_MINUTES = env.number("DESK_LATE_MINUTES", 30, most=A_WEEK)
if DESK_LATE_MINUTES <= DESK_WAITING_MINUTES:
    stop_start("DESK_LATE_MINUTES", "must be more than DESK_WAITING_MINUTES.")
# A claim that nobody finishes goes to review after these minutes.
DESK_CLAIM_MINUTES = env.number("DESK_CLAIM_MINUTES", 60, most=A_WEEK)
DESK_REFRESH_SECONDS = 20  # the desk's pages reload their numbers
RECONCILE_HOUR = 3  # UTC; the nightly run starts within ten minutes after it
REFUND_OVERDUE_MINUTES = 5  # a due refund is shown as overdue

# Metrics (docs/operate/monitor.md). The processes of a host share the folder, which is best kept in
# memory. The exporter (manage.py run_metrics) listens on host and port, which must not be public.
METRICS_DIR = env.folder("METRICS_DIR", "var/metrics", base=BASE_DIR)
METRICS_HOST = env.host("METRICS_HOST", "127.0.0.1")
METRICS_PORT = env.port("METRICS_PORT", 9464)

# Telegram (docs/architecture.md, "Telegram"). Without a token nothing is sent. The back office
# configures which orders are announced in which chat. TELEGRAM_API_URL may name your own Bot API
# server.
TELEGRAM_BOT_TOKEN = env.str("TELEGRAM_BOT_TOKEN", "")
TELEGRAM_API_URL = env.web("TELEGRAM_API_URL", "https://api.telegram.org")
TELEGRAM_TIMEOUT_SECONDS = 10  # at most 12: a task may start a call late and has a time limit
# Messages to one chat. Telegram accepts about 20 messages a minute in a group.
TELEGRAM_MESSAGES_PER_MINUTE = 18

# Email to merchants. Without EMAIL_URL, emails are written to files in var/mail. PUBLIC_URL is the
# public address of the service; links in emails and in the merchants' documentation begin with it.
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = env.str("EMAIL_FROM", "Voucher & top-up <no-reply@localhost>")
SUPPORT_CONTACT = env.str("SUPPORT_CONTACT", "")  # at the foot of every page for merchants
PUBLIC_URL = env.web("PUBLIC_URL", "http://localhost:8000").rstrip("/")
if _email := env.email("EMAIL_URL"):
    vars().update(_email)
else:
    EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
    EMAIL_FILE_PATH = VAR_DIR / "mail"

# How often a web process writes the latest use of keys to the database
# (accounts/api_access/usage.py).
USE_WRITTEN_EVERY_SECONDS = 10

# Request bodies, on every path. The largest purchase that the contract allows has 30 fields of 255
# characters. JSON may escape each character with 12 bytes (`\ud83d\ude00`), and a field id with its
# quotes takes 21: 30 * (255 * 12 + 2 + 21 + 2) is 92,550 bytes. The rest is for white space.
MAX_BODY_BYTES = 128 * 1024
# A view may accept more from people who have signed in (`accepts_bodies_up_to`). No upload is ever
# written to the disk.
FILE_UPLOAD_HANDLERS = ["django.core.files.uploadhandler.MemoryFileUploadHandler"]
# That handler drops the files of a larger body without a word. The view has bounded the body.
FILE_UPLOAD_MAX_MEMORY_SIZE = 1 << 30

# API.
API_DEFAULT_RATE_LIMIT_PER_MINUTE = env.number(
    "API_DEFAULT_RATE_LIMIT_PER_MINUTE", 600, most=1_000_000
)
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["accounts.api_access.authentication.BearerAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_THROTTLE_CLASSES": ["accounts.api_access.throttling.ClientRateThrottle"],
    "DEFAULT_RENDERER_CLASSES": ["core.api.json.ExactJSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["core.api.json.StrictJSONParser"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "core.api.json.JSONOnly",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "core.api.exceptions.handle_exception",
    "UNAUTHENTICATED_USER": None,
    "COERCE_DECIMAL_TO_STRING": False,
}
SPECTACULAR_SETTINGS = {
    **OPENAPI_SETTINGS,
    "TAGS": [
        {"name": "ping", "description": "Check that an API key works."},
        {"name": "balance", "description": "The wallet balance."},
        {"name": "products", "description": "The voucher catalogue."},
        {"name": "topup-products", "description": "The top-up catalogue."},
        {"name": "orders", "description": "Purchases, and the orders they created."},
    ],
    "ENUM_NAME_OVERRIDES": {
        "OrderStatusEnum": "orders.models.OrderStatus.choices",
        "FulfilmentStatusEnum": "topups.models.FulfilmentStatus.choices",
        "VoucherDeliveryEnum": ["voucher"],
        "TopUpDeliveryEnum": ["top_up"],
    },
}

# Security.
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SECURE_SSL_REDIRECT = HTTPS
# Load balancers probe over plain HTTP. For the API, ApiOverHttpsMiddleware refuses plain HTTP.
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$", r"^readyz/(bot|worker)$", r"^api/"]
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = HTTPS
if TRUSTED_PROXIES:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
X_FRAME_OPTIONS = "DENY"
# Sign-in and password change: after this many wrong passwords, no more are checked for a while
# (accounts/sign_in/limits.py). AXES_FAILURE_LIMIT is for one name from one address. The others are
# for one address (IPv6: a /64) with any names, and for one name from all addresses together.
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "accounts.sign_in.limits.PasswordBackend",
]
# Staff may sign in at the company's OpenID Connect provider. None when it is not configured.
COMPANY_SIGN_IN = company_sign_in(env)
if COMPANY_SIGN_IN:
    AUTHENTICATION_BACKENDS.append("operators.sign_in.company.backend.CompanyBackend")
AXES_FAILURE_LIMIT = 10
LOGIN_FAILURE_LIMIT_PER_ADDRESS = env.number("LOGIN_FAILURE_LIMIT_PER_ADDRESS", 50, most=10_000)
LOGIN_FAILURE_LIMIT_PER_NAME = 50
# Sign-ins in a minute, with right passwords too.
LOGIN_ATTEMPTS_PER_ADDRESS = 60
LOGIN_ATTEMPTS_PER_NAME = 20
AXES_HANDLER = "accounts.sign_in.limits.SignInLimits"
AXES_USERNAME_CALLABLE = "accounts.sign_in.limits.attempted_name"
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True  # of this name at this address only
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False  # a refused guess does not prolong it
# Axes records the posted form of a failed attempt without these fields and without `password`.
AXES_SENSITIVE_PARAMETERS = [
    *("username", "ip_address", "csrfmiddlewaretoken"),
    *("old_password", "new_password1", "new_password2"),
]
AXES_HTTP_RESPONSE_CODE = 429
AXES_LOCKOUT_CALLABLE = "config.error_pages.locked_out"
CSRF_FAILURE_VIEW = "config.error_pages.csrf_failure"
AXES_CLIENT_IP_CALLABLE = "accounts.addresses.counted_address"
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False
PASSWORD_RESET_TIMEOUT = 3600
# A session ends `…_HOURS` after its sign-in, or `…_IDLE_MINUTES` after its last use if that is
# earlier. Each number is at least 1.
SESSION_ENGINE = "accounts.sign_in.sessions"
STAFF_SESSION_HOURS = env.number("STAFF_SESSION_HOURS", 12, most=A_YEAR)
STAFF_SESSION_IDLE_MINUTES = env.number("STAFF_SESSION_IDLE_MINUTES", 30, most=A_WEEK)
MERCHANT_SESSION_HOURS = env.number("MERCHANT_SESSION_HOURS", 12, most=A_YEAR)
MERCHANT_SESSION_IDLE_MINUTES = env.number("MERCHANT_SESSION_IDLE_MINUTES", 60, most=A_WEEK)
OTP_TOTP_ISSUER = OTP_WEBAUTHN_RP_NAME = "Voucher & top-up"
# Passkeys of staff belong to the host of PUBLIC_URL. A new host makes them useless.
OTP_WEBAUTHN_RP_ID = urlsplit(PUBLIC_URL).hostname or "localhost"
OTP_WEBAUTHN_ALLOWED_ORIGINS = [f"{urlsplit(PUBLIC_URL).scheme}://{urlsplit(PUBLIC_URL).netloc}"]
OTP_WEBAUTHN_ALLOW_PASSWORDLESS_LOGIN = False
OTP_WEBAUTHN_HELPER_CLASS = "operators.sign_in.passkeys.Helper"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {
        "NAME": "audit.people.RecordingLengthValidator",
        "OPTIONS": {"min_length": 12},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

# Time and language. People choose theirs (accounts/preferences/languages.py). What programs read is
# in English.
LANGUAGE_CODE = "en"
LOCALE_PATHS = [BASE_DIR / "translations"]
_translated = sorted(folder.parent.name for folder in LOCALE_PATHS[0].glob("*/LC_MESSAGES"))
LANGUAGES = [("en", "English"), *((one, LANG_INFO[one]["name_local"]) for one in _translated)]
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = True

# Static files. With STATIC_ROOT, `collectstatic` copies them there under names that contain a hash
# of their content, and browsers keep them for ever. Without STATIC_ROOT, whitenoise serves them
# from the installed packages under plain names, and browsers ask for them again after a minute.
STATIC_URL = "/static/"
STATIC_ROOT = env.str("STATIC_ROOT", "") or None
WHITENOISE_USE_FINDERS = STATIC_ROOT is None
_static_storage = (
    "whitenoise.storage.CompressedManifestStaticFilesStorage"
    if STATIC_ROOT
    else "django.contrib.staticfiles.storage.StaticFilesStorage"
)
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": _static_storage},
}

# Logs: one JSON object per line (core/telemetry/logs.py).
LOG_LEVEL = env.log_level("LOG_LEVEL", "INFO")
LOG_SECRETS = [TELEGRAM_BOT_TOKEN]  # replaced with *** in every line
# Traces and error reports leave the process only where these name a receiver.
TRACES_URL = env.web("OTEL_EXPORTER_OTLP_ENDPOINT", "")
TRACES_HEADERS = env.str("OTEL_EXPORTER_OTLP_HEADERS", "")  # may be secret
if not all("=" in header for header in TRACES_HEADERS.split(",") if header):
    stop_start("OTEL_EXPORTER_OTLP_HEADERS", "must be name=value pairs, separated by commas.")
SENTRY_DSN = env.str("SENTRY_DSN", "")
# The purchase log is also kept in files of this folder (docs/operate/backup.md).
PURCHASE_LOG_DIR = env.folder("PURCHASE_LOG_DIR", "", base=BASE_DIR)
LOGGING = logging_config(
    level=LOG_LEVEL,
    secrets=LOG_SECRETS,
    report=error_reporter(SENTRY_DSN, release=f"voucher@{VERSION}"),
)
LOGGING_CONFIG = "core.telemetry.logs.configure"

# Back office.
LOGIN_URL, LOGIN_REDIRECT_URL = "admin:login", "admin:index"
FORMAT_MODULE_PATH = ["core.formats"]
# Of languages that Django does not know.
DATE_FORMAT = SHORT_DATE_FORMAT = "Y-m-d"
DATETIME_FORMAT, SHORT_DATETIME_FORMAT = "Y-m-d H:i:s", "Y-m-d H:i"

"""Every setting of the service, read once from the environment.

Production sets `DATABASE_URL` and its companions (docs/production.md). Where `DATABASE_URL` is
absent the embedded default applies: `make run` writes `var/embedded.env`, which is read here, so
that any command typed in another shell finds the same database.
"""

import os
from datetime import timedelta
from pathlib import Path

from django.urls import reverse_lazy

from config.env import StrictEnv
from config.logs import logging_config

BASE_DIR = Path(__file__).resolve().parent.parent
VAR_DIR = BASE_DIR / "var"

env = StrictEnv()
if "DATABASE_URL" not in os.environ:
    env.read_env(VAR_DIR / "embedded.env")

# Secrets. An empty one is refused by config/checks.py before the first request is served.
SECRET_KEY = env.str("DJANGO_SECRET_KEY", "")
CODE_ENCRYPTION_KEYS = env.list("CODE_ENCRYPTION_KEYS", default=[])

DEBUG = False
ALLOWED_HOSTS = env.list("DJANGO_ALLOWED_HOSTS", default=[])
CSRF_TRUSTED_ORIGINS = env.list("DJANGO_CSRF_TRUSTED_ORIGINS", default=[])
# Networks of the proxies in front; only they are believed about X-Forwarded-For. They must set
# X-Forwarded-Proto themselves.
TRUSTED_PROXIES = env.list("TRUSTED_PROXIES", default=[])
# Whether browsers and merchants reach the service by HTTPS; only the embedded default does not.
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
    "drf_spectacular_sidecar",
    "django_structlog",
    "axes",
    "django_otp",
    "django_otp.plugins.otp_static",
    "django_otp.plugins.otp_totp",
    "config.apps.ConfigConfig",
    "audit",
    "accounts",
    "catalogue",
    "wallets",
    "idempotency",
    "topups",
    "orders",
    "merchants",
    "operators",
]

MIDDLEWARE = [
    "config.http.request_log.RequestLogMiddleware",
    "accounts.middleware.TrustedProxyMiddleware",
    "config.http.middleware.ApiOverHttpsMiddleware",
    "config.http.body_limits.BodyLimitMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "config.http.middleware.PageHeadersMiddleware",
    "config.http.outside_api.WhiteNoiseMiddleware",
    "config.http.outside_api.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "config.http.outside_api.AuthenticationMiddleware",
    "config.http.outside_api.OTPMiddleware",
    "operators.middleware.StaffSecondFactorMiddleware",
    "merchants.middleware.MemberSecondFactorMiddleware",
    "config.http.outside_api.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "axes.middleware.AxesMiddleware",  # last: it answers for a log-in that was locked out
]

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
APPEND_SLASH = False  # an unknown API path is a 404, never a redirect

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# Database. ATOMIC_REQUESTS stays off: a claim must be visible to a concurrent retry, and a failure
# after the purchase must leave the order standing (docs/architecture.md, "A purchase").
_database = env.postgres("DATABASE_URL")
DATABASES = {
    "default": {
        **_database,
        "ATOMIC_REQUESTS": False,
        "CONN_MAX_AGE": 600,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {
            "connect_timeout": 5,
            # A database host that vanished without a word is given up within half a minute.
            "tcp_user_timeout": 30_000,
            "keepalives_idle": 15,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            **_database.get("OPTIONS", {}),  # what the URL asks for, sslmode above all
            # A statement or a forgotten transaction ends long before the five minutes after which
            # another attempt may take a key over.
            "options": (
                "-c statement_timeout=20s -c lock_timeout=10s"
                " -c idle_in_transaction_session_timeout=20s"
            ),
        },
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Cache: the rate limit, and nothing that money depends on.
REDIS_URL = env.redis("REDIS_URL")
if REDIS_URL:
    _redis = {
        "LOCATION": REDIS_URL,
        # A lost cache may cost a request a moment, never the seconds of the default back-off;
        # the one retry is for a connection that a cache restart left stale.
        "OPTIONS": {
            "socket_connect_timeout": 0.25,
            "socket_timeout": 0.25,
            "pool_class": "accounts.counting_cache.ImpatientPool",
        },
    }
    CACHES = {
        "default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", **_redis},
        "counters": {"BACKEND": "accounts.counting_cache.CountingRedisCache", **_redis},
    }
    RATELIMIT_USE_CACHE = "counters"
else:
    CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
# How many web processes run on this host; granian reads the same variable.
WEB_WORKERS = env.int("GRANIAN_WORKERS", 0)
# django-ratelimit's own checks look at the cache class by name; ours (config/checks.py) say more.
SILENCED_SYSTEM_CHECKS = ["django_ratelimit.E003", "django_ratelimit.W001"]

# Celery. Every task is safe to run twice, so a message is given up only once its task has ended.
CELERY_BROKER_URL = env.str("CELERY_BROKER_URL", REDIS_URL)
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False
CELERY_TASK_SOFT_TIME_LIMIT = 25
CELERY_TASK_TIME_LIMIT = 30
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None  # a worker waits for its broker as long as it takes
CELERY_BROKER_CONNECTION_TIMEOUT = 2
CELERY_BROKER_HEARTBEAT = 20  # RabbitMQ; Redis and Valkey know health_check_interval instead
CELERY_BROKER_TRANSPORT_OPTIONS = {}
if CELERY_BROKER_URL.startswith("redis"):
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        # A worker that died is noticed by its silence only: its tasks are given out again after
        # this, so it is longer than any task may take and than any retry waits.
        "visibility_timeout": env.int("CELERY_VISIBILITY_TIMEOUT_SECONDS", 45),
        "unacked_restore_interval": 2,
        "unacked_restore_throttle": 1,
        # Without these, one word into a connection that leads nowhere waits forever.
        "socket_connect_timeout": 2,
        "socket_timeout": 5,
        "health_check_interval": 5,
    }
# What workers find waiting after an outage need not be done for each time it was due.
_ONLY_LATELY = {"expires": 300}
CELERY_BEAT_SCHEDULE = {
    "cleanup-idempotency": {
        "task": "idempotency.tasks.cleanup_idempotency",
        "schedule": env.int("IDEMPOTENCY_CLEANUP_EVERY_SECONDS", 600),
        "options": _ONLY_LATELY,
    },
    "sweep-balance-alerts": {
        "task": "merchants.tasks.sweep_balance_alerts",
        "schedule": env.int("BALANCE_ALERT_SWEEP_EVERY_SECONDS", 30),
        "options": _ONLY_LATELY,
    },
    "clear-sessions": {"task": "merchants.tasks.clear_sessions", "schedule": 86_400},
    "sweep-emails": {
        "task": "merchants.tasks.sweep_emails",
        "schedule": env.int("EMAIL_SWEEP_EVERY_SECONDS", 60),
        "options": _ONLY_LATELY,
    },
    "sweep-announcements": {
        "task": "operators.tasks.sweep_announcements",
        "schedule": env.int("ANNOUNCEMENT_SWEEP_EVERY_SECONDS", 10),
        "options": _ONLY_LATELY,
    },
    "sweep-refunds": {
        "task": "topups.tasks.sweep_refunds",
        "schedule": env.int("REFUND_SWEEP_EVERY_SECONDS", 30),
        "options": _ONLY_LATELY,
    },
}

# Idempotency (contract, "Idempotency record"). Tests shorten these; nobody else should.
IDEMPOTENCY_IN_PROGRESS_SECONDS = env.int("IDEMPOTENCY_IN_PROGRESS_SECONDS", 300)
IDEMPOTENCY_KEEP_COMPLETED_DAYS = env.int("IDEMPOTENCY_KEEP_COMPLETED_DAYS", 7)
IDEMPOTENCY_KEEP_UNFINISHED_DAYS = env.int("IDEMPOTENCY_KEEP_UNFINISHED_DAYS", 1)

# The operators' desk: from when on a waiting top-up is shown in another colour, and a refund late.
DESK_WAITING_MINUTES = env.int("DESK_WAITING_MINUTES", 10)
DESK_LATE_MINUTES = env.int("DESK_LATE_MINUTES", 30)
# How often the desk's pages fetch its numbers again.
DESK_REFRESH_SECONDS = env.int("DESK_REFRESH_SECONDS", 20)
REFUND_OVERDUE_MINUTES = env.int("REFUND_OVERDUE_MINUTES", 5)

# Telegram (docs/architecture.md, "Telegram"). Without a token nothing is sent; what goes where is
# set in the back office. The address may be that of a Bot API server of your own.
TELEGRAM_BOT_TOKEN = env.str("TELEGRAM_BOT_TOKEN", "")
TELEGRAM_API_URL = env.str("TELEGRAM_API_URL", "https://api.telegram.org")
TELEGRAM_TIMEOUT_SECONDS = env.int("TELEGRAM_TIMEOUT_SECONDS", 10)
# Announcements in one chat. Telegram takes about 20 messages a minute in a group.
TELEGRAM_MESSAGES_PER_MINUTE = env.int("TELEGRAM_MESSAGES_PER_MINUTE", 18)
# Where set, Telegram posts updates to this address, and the bot listens behind it; else it polls.
TELEGRAM_WEBHOOK_URL = env.str("TELEGRAM_WEBHOOK_URL", "")
TELEGRAM_WEBHOOK_HOST = env.str("TELEGRAM_WEBHOOK_HOST", "127.0.0.1")
TELEGRAM_WEBHOOK_PORT = env.int("TELEGRAM_WEBHOOK_PORT", 8443)

# Email to merchants. Without EMAIL_URL, emails are files in var/mail. PUBLIC_URL is where people
# and programs reach the service: links in emails and the merchants' documentation begin with it.
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = env.str("EMAIL_FROM", "Voucher & top-up <no-reply@localhost>")
PUBLIC_URL = env.str("PUBLIC_URL", "http://localhost:8000").rstrip("/")
if "EMAIL_URL" in os.environ:
    vars().update(env.email_url("EMAIL_URL"))
else:
    EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
    EMAIL_FILE_PATH = VAR_DIR / "mail"

# How often a web process writes down what was used lately (accounts/usage.py).
USE_WRITTEN_EVERY_SECONDS = env.int("USE_WRITTEN_EVERY_SECONDS", 10)

# API.
API_MAX_BODY_BYTES = 64 * 1024
MERCHANT_MAX_BODY_BYTES = 4 * 1024 * 1024  # a file of references, and what is sent around it
API_DEFAULT_RATE_LIMIT_PER_MINUTE = env.int("API_DEFAULT_RATE_LIMIT_PER_MINUTE", 600)
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["accounts.authentication.BearerAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_THROTTLE_CLASSES": ["accounts.throttling.ClientRateThrottle"],
    "DEFAULT_RENDERER_CLASSES": ["config.api.json.ExactJSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["config.api.json.StrictJSONParser"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "config.api.json.JSONOnly",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "config.api.exceptions.handle_exception",
    "UNAUTHENTICATED_USER": None,
    "COERCE_DECIMAL_TO_STRING": False,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Voucher and Player-ID Top-up Purchasing API",
    "VERSION": "1.1.0",
    "OAS_VERSION": "3.0.3",
    "DESCRIPTION": (
        "Merchants buy voucher codes and game top-ups from a prepaid wallet. Every request carries"
        " `Authorization: Bearer <API_KEY>`; every purchase carries an `Idempotency-Key`. A success"
        " is `{success: true, data}`, a failure `{success: false, error: {code, message}}`: branch"
        " on `error.code`. What is rejected before it reaches the API (an unknown path, a wrong"
        " method) is `{message}` only. Money values are exact JSON numbers: read them as decimals."
    ),
    "TAGS": [
        {"name": "ping", "description": "Does this key work."},
        {"name": "balance", "description": "What is left in the wallet."},
        {"name": "products", "description": "The voucher catalogue."},
        {"name": "topup-products", "description": "The top-up catalogue."},
        {"name": "orders", "description": "Purchases, and what became of them."},
    ],
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": r"/api/v1",
    "SCHEMA_PATH_PREFIX_TRIM": True,
    "SERVERS": [{"url": "/api/v1"}],
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "ENUM_NAME_OVERRIDES": {
        "OrderStatusEnum": "orders.models.OrderStatus.choices",
        "FulfilmentStatusEnum": "topups.models.FulfilmentStatus.choices",
        "VoucherDeliveryEnum": ["voucher"],
        "TopUpDeliveryEnum": ["top_up"],
    },
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "config.api.openapi.say_success",
        "config.api.openapi.require_bodies",
    ],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
}

# Security.
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SECURE_SSL_REDIRECT = HTTPS
# Load balancers probe by plain HTTP; the API refuses it (ApiOverHttpsMiddleware).
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$", r"^api/"]
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = HTTPS
if TRUSTED_PROXIES:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
X_FRAME_OPTIONS = "DENY"
# Log-in, and members' change of their password: ten wrong passwords for a name from one address
# close that pair for a while.
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
AXES_FAILURE_LIMIT = env.int("LOGIN_FAILURE_LIMIT", 10)
AXES_COOLOFF_TIME = timedelta(minutes=env.int("LOGIN_COOLOFF_MINUTES", 15))
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
# A failed attempt is kept with what was posted, but for these; `password` never is.
AXES_SENSITIVE_PARAMETERS = [
    *("username", "ip_address", "csrfmiddlewaretoken"),
    *("old_password", "new_password1", "new_password2"),
]
AXES_HTTP_RESPONSE_CODE = 429
AXES_LOCKOUT_CALLABLE = "config.http.error_pages.locked_out"
CSRF_FAILURE_VIEW = "config.http.error_pages.csrf_failure"
AXES_CLIENT_IP_CALLABLE = "accounts.addresses.client_address_text"
AXES_DISABLE_ACCESS_LOG = True
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False
PASSWORD_RESET_TIMEOUT = 3600
# Whoever signs in to the merchants' page does it again after a working day.
MERCHANT_SESSION_HOURS = env.int("MERCHANT_SESSION_HOURS", 12)
OTP_TOTP_ISSUER = "Voucher & top-up"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 12},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

# Time and language.
LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False

# Static files, served by whitenoise from the packages that bring them: nothing to collect.
STATIC_URL = "/static/"
WHITENOISE_USE_FINDERS = True

# Logs: one JSON object a line; config/logs.py says what never reaches them.
LOG_LEVEL = env.log_level("LOG_LEVEL", "INFO")
LOG_SECRETS = [TELEGRAM_BOT_TOKEN]  # what no line may hold
LOGGING = logging_config(level=LOG_LEVEL, secrets=LOG_SECRETS)
LOGGING_CONFIG = "config.logs.configure"

# Back office.
LOGIN_URL, LOGIN_REDIRECT_URL = "admin:login", "admin:index"
FORMAT_MODULE_PATH = ["operators.formats"]
UNFOLD = {
    "SITE_TITLE": "Voucher & top-up service",
    "SITE_HEADER": "Voucher & top-up",
    "SITE_SUBHEADER": "Back office",
    "SITE_SYMBOL": "confirmation_number",
    "SITE_URL": None,
    "SHOW_VIEW_ON_SITE": False,
    "SHOW_BACK_BUTTON": True,
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": "operators.admin.menu.icon"}
    ],
    "STYLES": ["operators.admin.menu.stylesheet"],
    "DASHBOARD_CALLBACK": "operators.admin.menu.first_page",
    "SIDEBAR": {"navigation": "operators.admin.menu.navigation"},
    "ACCOUNT": {
        "navigation": [
            {"title": "Second factor", "link": reverse_lazy("two_factor_enrol")},
            {"title": "Telegram", "link": reverse_lazy("telegram_link")},
        ]
    },
    "COLORS": {
        "primary": {
            "50": "#eff6ff",
            "100": "#dbeafe",
            "200": "#bfdbfe",
            "300": "#93c5fd",
            "400": "#60a5fa",
            "500": "#3b82f6",
            "600": "#2563eb",
            "700": "#1d4ed8",
            "800": "#1e40af",
            "900": "#1e3a8a",
            "950": "#172554",
        }
    },
}

"""The settings of `startproject` and of DRF's tutorial, with persistent database connections.

Nobody signs in here, so the apps for that are left out.
"""

from config.settings import DATABASES, SECRET_KEY  # noqa: F401

ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "labs.bench.peers.drf_peer"
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "audit",
    "rest_framework",
    "accounts",
    "catalogue",
    "wallets",
    "idempotency",
    "topups",
    "orders",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
API_DEFAULT_RATE_LIMIT_PER_MINUTE = 600
USE_TZ = True
REST_FRAMEWORK = {
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
}

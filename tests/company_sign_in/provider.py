"""An OpenID Connect provider in a process of its own: Django OAuth Toolkit on SQLite.

    python -m tests.company_sign_in.provider FOLDER PORT CALLBACK

It signs in with a form, insists on PKCE, on the exact callback and on the client's secret, and
signs tokens with RS256. Everybody has the password PASSWORD. FOLDER/people.json holds the claims of
each person; `company_provider` in conftest.py writes it. A claim there replaces even those that the
provider makes, such as `nonce`, so tests can have it issue the tokens of a faulty provider. The
claim `seconds` is how long the provider takes for the token.
"""

import json
import os
import sys
import time
from pathlib import Path
from socketserver import ThreadingMixIn
from types import ModuleType
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import django
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from django.conf import settings

PASSWORD = "the password at the company"
CLIENT, SECRET = "voucher-service", "the-secret-of-the-client"
APPS = ("auth", "contenttypes", "sessions", "oauth2_provider")
LOGIN_PAGE = """<form method="post">{% csrf_token %}{{ form }}<button>Continue</button></form>"""


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


def main(folder: Path, port: int, callback: str) -> None:
    os.environ["OAUTHLIB_INSECURE_TRANSPORT"] = "1"  # plain HTTP on this machine
    urls = ModuleType("provider_urls")
    _configure(folder, port, urls)
    django.setup()
    from django.contrib.auth.models import User
    from django.contrib.auth.views import LoginView
    from django.core.management import call_command
    from django.core.wsgi import get_wsgi_application
    from django.urls import include, path
    from oauth2_provider import urls as provider_urls
    from oauth2_provider.models import Application
    from oauth2_provider.oauth2_validators import OAuth2Validator

    def people() -> Any:
        return json.loads((folder / "people.json").read_text())

    class Validator(OAuth2Validator):  # type: ignore[misc]  # untyped
        oidc_claim_scope = None

        def get_additional_claims(self, request: Any) -> dict[str, Any]:
            return {}

        def get_id_token_dictionary(self, *args: Any) -> Any:
            claims, ends = super().get_id_token_dictionary(*args)
            own = people()[args[-1].user.username]
            time.sleep(own.get("seconds", 0))
            return {**claims, **own}, ends

    sys.modules[__name__].Validator = Validator  # type: ignore[attr-defined]
    call_command("migrate", verbosity=0, run_syncdb=True)
    for name in people():
        User.objects.create_user(name, password=PASSWORD)
    Application.objects.create(
        client_id=CLIENT,
        client_secret=SECRET,
        client_type=Application.CLIENT_CONFIDENTIAL,
        authorization_grant_type=Application.GRANT_AUTHORIZATION_CODE,
        redirect_uris=callback,
        skip_authorization=True,
        algorithm=Application.RS256_ALGORITHM,
    )
    urls.urlpatterns = [  # type: ignore[attr-defined]
        path("login/", LoginView.as_view(template_name="login.html")),
        path("", include(provider_urls)),
    ]
    server = make_server("127.0.0.1", port, get_wsgi_application(), Server, Quiet)
    server.serve_forever()


def _configure(folder: Path, port: int, urls: ModuleType) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    settings.configure(
        SECRET_KEY="of the provider",
        ALLOWED_HOSTS=["127.0.0.1"],
        ROOT_URLCONF=urls,
        LOGIN_URL="/login/",
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": folder / "db"}},
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        INSTALLED_APPS=[f"django.contrib.{app}" for app in APPS[:-1]] + [APPS[-1]],
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.middleware.csrf.CsrfViewMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
        ],
        SESSION_COOKIE_NAME="provider_session",  # the service is on the same host
        CSRF_COOKIE_NAME="provider_csrf",
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
        TEMPLATES=[
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "OPTIONS": {
                    "loaders": [
                        ("django.template.loaders.locmem.Loader", {"login.html": LOGIN_PAGE}),
                    ]
                },
            }
        ],
        MIGRATION_MODULES=dict.fromkeys(APPS),  # creates the tables at once
        USE_TZ=True,
        OAUTH2_PROVIDER={
            "OIDC_ENABLED": True,
            "OIDC_ISS_ENDPOINT": f"http://127.0.0.1:{port}",
            "OIDC_RSA_PRIVATE_KEY": key.private_bytes(
                Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
            ).decode(),
            "OAUTH2_VALIDATOR_CLASS": f"{__name__}.Validator",
            "SCOPES": {"openid": "", "email": "", "profile": ""},
            "PKCE_REQUIRED": True,
        },
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])

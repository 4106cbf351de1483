"""The OpenID Connect provider: authorization code flow with PKCE, state and nonce, by Authlib."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

from authlib.common.errors import AuthlibBaseError
from authlib.integrations.django_client import OAuth
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from joserfc.errors import JoseError
from requests.exceptions import RequestException

from operators.sign_in.company.settings import CompanySignIn

TIMEOUT = 5  # seconds, for each of at most three calls of the provider
CLOCK_SKEW = 60  # seconds
# Public-key signatures only. A provider that also lists HS256 or none cannot make us accept them.
ALGORITHMS = frozenset(
    ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
)

# One answer of the provider is read at a time in each process, so that a slow provider cannot take
# all threads. Others wait for a second.
SECONDS_IN_LINE = 1.0  # for which a sign-in waits while the process reads another one
_reading = threading.Lock()


class ProviderProblem(Exception):
    """The provider does not respond, or its answer is late or not valid for this browser and
    service.

    The message is for the log and holds no value that the provider or the browser sent.
    """


class ProviderBusy(Exception):
    """Another request of this process is already waiting for the provider."""


def company() -> CompanySignIn:
    """The settings. Raises ImproperlyConfigured when company sign-in is off."""
    company_settings = settings.COMPANY_SIGN_IN
    if company_settings is None:
        raise ImproperlyConfigured("Company sign-in is off: COMPANY_SIGN_IN_ISSUER is not set.")
    return company_settings


def redirect_to_provider(request: HttpRequest) -> HttpResponse:
    """Sends the browser to the provider. The session keeps state, nonce and PKCE verifier.

    Raises ProviderProblem and ProviderBusy.
    """
    acr = [value for claim, value in sorted(company().second_factors) if claim == "acr"]
    more = {"acr_values": " ".join(acr)} if acr else {}
    address = f"{settings.PUBLIC_URL}{reverse('company_sign_in_callback')}"
    with _one_at_a_time():
        answer: HttpResponse = _client().authorize_redirect(request, address, **more)
    return answer


def read_answer(request: HttpRequest) -> Mapping[str, Any]:
    """The claims of the ID token for which the browser brings a code.

    Checked are state, PKCE (by the provider), signature, issuer, audience, expiry and nonce. Raises
    ProviderProblem and ProviderBusy.
    """
    checked = {
        "iss": {"essential": True, "value": company().issuer},
        "aud": {"essential": True, "value": company().client_id},
        "sub": {"essential": True},
        "nonce": {"essential": True},
    }
    with _one_at_a_time():
        client = _client()
        metadata = client.load_server_metadata()
        offered = metadata.get("id_token_signing_alg_values_supported", ["RS256"])
        metadata["id_token_signing_alg_values_supported"] = sorted(ALGORITHMS.intersection(offered))
        token = client.authorize_access_token(request, claims_options=checked, leeway=CLOCK_SKEW)
    claims: Mapping[str, Any] | None = token.get("userinfo")
    if claims is None:
        raise ProviderProblem("no ID token")
    return claims


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    if not _reading.acquire(timeout=SECONDS_IN_LINE):
        raise ProviderBusy
    try:
        yield
    except (AuthlibBaseError, JoseError) as error:
        claim = getattr(error, "claim", None)
        name = type(error).__name__
        raise ProviderProblem(f"{name}: {claim}" if claim else name) from error
    except (RequestException, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise ProviderProblem(type(error).__name__) from error
    finally:
        _reading.release()


@cache
def _client() -> Any:
    """Authlib's client. It reads the provider's metadata and keys once for each process, and the
    keys again when a token names one that it does not know."""
    return OAuth().register(
        "company",
        client_id=company().client_id,
        client_secret=company().client_secret,
        server_metadata_url=f"{company().issuer.rstrip('/')}/.well-known/openid-configuration",
        client_kwargs={
            "scope": company().scopes,
            "code_challenge_method": "S256",
            "default_timeout": TIMEOUT,
        },
    )

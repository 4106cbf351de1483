"""Who may call: accounts, their API clients, and the secret keys of a client."""

from __future__ import annotations

import ipaddress

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from config.database.columns import (
    CURRENCY_CODE,
    CURRENCY_LENGTH,
    NAME_LENGTH,
    validate_currency,
)


def default_rate_limit() -> int:
    """Requests per minute of a new client."""
    limit: int = settings.API_DEFAULT_RATE_LIMIT_PER_MINUTE
    return limit


def validate_network(text: str) -> None:
    """Raises ValidationError unless `text` is an IPv4 or IPv6 address or network."""
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise ValidationError(f"{text!r} is not an IP address or network.") from None


class Account(models.Model):
    """A merchant business. Owns at most one wallet, any number of clients, and its references.

    The currency never changes (a trigger refuses it): it gives the wallet's numbers their meaning.
    """

    name = models.CharField(max_length=NAME_LENGTH)
    currency = models.CharField(max_length=CURRENCY_LENGTH, validators=[validate_currency])
    enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="accounts_account_currency_is_a_code",
                condition=Q(currency__regex=CURRENCY_CODE),
            ),
        ]

    def __str__(self) -> str:
        return self.name


class ApiClient(models.Model):
    """An API identity: orders, idempotency keys, allowlist and rate limit belong to it.

    A client without an account is allowed: it can read the catalogue and buy nothing.
    """

    account = models.ForeignKey(
        Account, on_delete=models.PROTECT, null=True, blank=True, related_name="clients"
    )
    name = models.CharField(max_length=NAME_LENGTH)
    enabled = models.BooleanField(default=True)
    rate_limit_per_minute = models.PositiveIntegerField(
        default=default_rate_limit, validators=[MinValueValidator(1)]
    )
    allowed_networks = ArrayField(
        models.CharField(max_length=49, validators=[validate_network]),
        default=list,
        blank=True,
        help_text="Addresses or networks that may call; empty means any.",
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    # DRF asks the user of a request whether it is one.
    is_authenticated = True
    # Of the key by which a request was made; not stored.
    key_prefix = ""

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="accounts_apiclient_rate_limit_is_positive",
                condition=Q(rate_limit_per_minute__gte=1),
            ),
        ]

    def __str__(self) -> str:
        return self.name


class ApiKey(models.Model):
    """A secret of a client, kept as a lookup prefix and a digest of the whole.

    Several may live at once while a merchant rotates from one to the next.
    """

    client = models.ForeignKey(ApiClient, on_delete=models.PROTECT, related_name="keys")
    prefix = models.CharField(max_length=16, unique=True)
    digest = models.CharField(max_length=64)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    # Within some seconds; see accounts/usage.py.
    last_used_at = models.DateTimeField(null=True, editable=False)

    def __str__(self) -> str:
        return self.prefix


class ClientUse(models.Model):
    """How many requests a client has made on its last day of use, in UTC; see accounts/usage.py."""

    client = models.OneToOneField(
        ApiClient, on_delete=models.CASCADE, primary_key=True, related_name="use"
    )
    day = models.DateField()
    requests = models.PositiveBigIntegerField()

    def __str__(self) -> str:
        return f"use of client {self.pk}"

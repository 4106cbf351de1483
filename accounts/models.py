"""The callers of the API: accounts, their clients, and the keys of a client. Second factors."""

from __future__ import annotations

import os
import time
from enum import StrEnum
from hashlib import sha256
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import BrinIndex
from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Count, F, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce, Now, Upper
from django.utils import timezone
from django.utils.translation import gettext_noop
from django_otp.models import Device, ThrottlingMixin
from django_otp.oath import TOTP

from accounts.addresses import validate_network
from core.database.columns import (
    CURRENCY_CODE,
    CURRENCY_LENGTH,
    NAME_LENGTH,
    validate_currency,
)
from core.database.sealing import Context, open_sealed, seal
from core.texts import lazy

NETWORK_LENGTH = 49  # an IPv6 address that ends in an IPv4 address, with its prefix length
KEY_PREFIX_LENGTH = 12  # hexadecimal digits
FACTOR_KEY_BYTES = 20  # what authenticator apps expect
ZONE_LENGTH = 64
LANGUAGE_LENGTH = 8
ADDRESS_LENGTH, COUNTRY_LENGTH, TAX_NUMBER_LENGTH = 400, 60, 60
CODE_LENGTH = 6  # digits that an app shows
# The most that a request record keeps of each.
METHOD_LENGTH, PATH_LENGTH, WORD_LENGTH = 16, 300, 40
REFERENCE_LENGTH, IDEMPOTENCY_KEY_LENGTH = 40, 128
# Of the values of 16 pages. A wrong group is read for one in 2,000 groups and values.
FILTER = "(n_distinct_per_range = 1000, false_positive_rate = 0.0005)"


def default_rate_limit() -> int:
    """The limit of a new client, in requests per minute."""
    limit: int = settings.API_DEFAULT_RATE_LIMIT_PER_MINUTE
    return limit


class Account(models.Model):
    """A merchant's business. It has at most one wallet, any number of clients, and references.

    The currency never changes (a trigger refuses it), because the wallet's balance is in it.

    With `needs_factors`, its members must have a second factor.

    `price_list_id` names the list with the account's own prices. The app `catalogue` adds the
    foreign key: the list has the account's currency (catalogue/sql/list_of_account.sql).
    """

    name = models.CharField(max_length=NAME_LENGTH)
    currency = models.CharField(max_length=CURRENCY_LENGTH, validators=[validate_currency])
    enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    price_list_id = models.BigIntegerField(null=True, editable=False)
    needs_factors = models.BooleanField(db_default=False, editable=False)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="accounts_account_currency_is_a_code",
                condition=Q(currency__regex=CURRENCY_CODE),
            ),
        ]
        indexes = [
            models.Index(name="accounts_account_by_name", fields=["name"]),
            models.Index(
                name="accounts_account_price_list",
                fields=["price_list_id"],
                condition=Q(price_list_id__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return self.name


class CompanyData(models.Model):
    """The data of a company that its statements name. What is not known is empty."""

    legal_name = models.CharField(max_length=NAME_LENGTH)
    address = models.TextField(max_length=ADDRESS_LENGTH, blank=True)
    country = models.CharField(max_length=COUNTRY_LENGTH, blank=True)
    tax_number = models.CharField(max_length=TAX_NUMBER_LENGTH, blank=True)
    contact = models.CharField("contact person", max_length=NAME_LENGTH, blank=True)
    billing_email = models.EmailField(blank=True)

    class Meta:
        abstract = True


class Company(CompanyData):
    """The company of an account. The note is for staff."""

    account = models.OneToOneField(
        Account, on_delete=models.PROTECT, primary_key=True, related_name="company"
    )
    note = models.TextField(max_length=ADDRESS_LENGTH, blank=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.legal_name


class Logo(models.Model):
    """A logo that was once in use. Statements of that time keep it, so it is never changed."""

    picture = models.BinaryField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"logo {self.pk}"


class OwnCompany(CompanyData):
    """The company that runs the service, as statements name it. There is one row at most."""

    id = models.SmallIntegerField(primary_key=True, default=1, editable=False)
    logo = models.ForeignKey(
        Logo, on_delete=models.PROTECT, null=True, editable=False, related_name="+"
    )
    footer = models.TextField(max_length=ADDRESS_LENGTH, blank=True)

    class Meta:
        default_permissions = ("view", "change")
        verbose_name = "own company"
        verbose_name_plural = "own company"
        constraints = [
            models.CheckConstraint(name="accounts_owncompany_is_one", condition=Q(id=1)),
        ]

    def __str__(self) -> str:
        return self.legal_name


NAME_TAKEN = lazy("Another client of this account has this name. Choose another one.")


class ApiClientQuerySet(models.QuerySet["ApiClient"]):
    def with_live_keys(self) -> ApiClientQuerySet:
        """Adds `live_keys` to each client: how many of its keys work now."""
        keys = ApiKey.objects.live().filter(client=OuterRef("pk")).values("client")
        count = keys.annotate(count=Count("pk")).values("count")
        return self.annotate(live_keys=Coalesce(Subquery(count), 0))


class ApiClient(models.Model):
    """An API identity. Orders, idempotency keys, the allowlist and the rate limit belong to it.

    A client without an account can read the catalogue but cannot buy.
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
        models.CharField(max_length=NETWORK_LENGTH, validators=[validate_network]),
        default=list,
        blank=True,
        help_text=lazy(
            "Addresses and networks that may call. Empty: calls are accepted from anywhere."
        ),
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = ApiClientQuerySet.as_manager()

    # Django REST framework reads this from `request.user`.
    is_authenticated = True
    # The prefix of the key that the request came with. Not stored.
    key_prefix = ""
    # Whether its account has no other client, not even one that is switched off. Not stored.
    is_only_client = False

    class Meta:
        verbose_name = lazy("API client")
        indexes = [models.Index(name="accounts_apiclient_by_name", fields=["name"])]
        constraints = [
            models.CheckConstraint(
                name="accounts_apiclient_rate_limit_is_positive",
                condition=Q(rate_limit_per_minute__gte=1),
            ),
            models.UniqueConstraint(
                F("account"), Upper("name"), name="accounts_apiclient_name_once_per_account"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        """Refuses the name of another client of the account, in whatever case.

        Locks the account, so two clients cannot both take a name.
        """
        accounts = Account.objects.select_for_update(no_key=True)
        accounts.filter(pk=self.account_id or 0).first()
        same = ApiClient.objects.exclude(pk=self.pk).filter(name__iexact=self.name)
        if self.account_id and same.filter(account=self.account_id).exists():
            raise ValidationError({"name": NAME_TAKEN})


class KeyState(StrEnum):
    """Whether a key works: `live` and `ending` keys do, and `ending` keys have an expiry."""

    LIVE = gettext_noop("live")
    ENDING = gettext_noop("ending")
    EXPIRED = gettext_noop("expired")
    REVOKED = gettext_noop("revoked")


class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    def live(self) -> ApiKeyQuerySet:
        """Only keys that work now. accounts/sql/find_key.sql applies this rule to requests."""
        return self.filter(Q(expires_at=None) | Q(expires_at__gt=Now()), revoked_at=None)


class ApiKey(models.Model):
    """A secret of a client, stored as a lookup prefix and a digest of the whole key.

    A client may have several live keys, for example while a merchant rotates them. `form` is the id
    of the form that asked for the key: a form that is sent twice issues one key.
    """

    client = models.ForeignKey(ApiClient, on_delete=models.PROTECT, related_name="keys")
    prefix = models.CharField(max_length=KEY_PREFIX_LENGTH, unique=True)
    digest = models.CharField(max_length=64)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    form = models.UUIDField(null=True, unique=True, editable=False)
    # Written a few seconds late, by accounts/api_access/usage.py.
    last_used_at = models.DateTimeField(null=True, editable=False)

    objects = ApiKeyQuerySet.as_manager()

    def __str__(self) -> str:
        return self.prefix

    @property
    def state(self) -> KeyState:
        """The state now, for pages. Queries use `ApiKey.objects.live()`."""
        if self.revoked_at:
            return KeyState.REVOKED
        if self.expires_at is None:
            return KeyState.LIVE
        return KeyState.ENDING if self.expires_at > timezone.now() else KeyState.EXPIRED

    @property
    def is_live(self) -> bool:
        """Whether the key works now."""
        return self.state in (KeyState.LIVE, KeyState.ENDING)


class ClientUse(models.Model):
    """The requests of a client on its last day of use, in UTC (accounts/api_access/usage.py)."""

    client = models.OneToOneField(
        ApiClient, on_delete=models.CASCADE, primary_key=True, related_name="use"
    )
    day = models.DateField()
    requests = models.PositiveBigIntegerField()

    def __str__(self) -> str:
        return f"use of client {self.pk}"


def open_factor_key(sealed: bytes | memoryview, row: bytes) -> bytes:
    """The key that a person's app holds; `row` is `factor_row` of the person. Raises CannotOpen."""
    return open_sealed(sealed, Context.SECOND_FACTOR, row)


def factor_row(user_id: int) -> bytes:
    """The row that a sealed key is bound to: it opens for no other user."""
    return b"user:%d" % user_id


class Preferences(models.Model):
    """The choices of a person for both sites: the time zone in which they read times, and the
    language of pages and emails. An empty language is that of the browser.

    `seen_language` is that of the pages at the last sign-in, for emails. English needs no row.
    """

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="preferences",
    )
    time_zone = models.CharField(max_length=ZONE_LENGTH)
    language = models.CharField(max_length=LANGUAGE_LENGTH, blank=True, db_default="")
    seen_language = models.CharField(max_length=LANGUAGE_LENGTH, blank=True, db_default="")

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"preferences of user {self.pk}"

    @property
    def language_of_emails(self) -> str:
        """The chosen language, or that of the last sign-in; empty if neither is known."""
        return self.language or self.seen_language


class SecondFactor(ThrottlingMixin, Device):  # type: ignore[misc]  # django_otp is untyped
    """A person's second factor: an app's key, and backup codes. A person has at most one.

    It is of no use until `confirmed`. After a wrong code, ThrottlingMixin refuses every code for 1,
    2, 4, 8, … seconds.
    """

    # The key is sealed, because its reader can compute every code.
    sealed_key = models.BinaryField()
    drift = models.SmallIntegerField(default=0)  # how many steps the person's clock is off
    last_step = models.BigIntegerField(default=-1)  # of the last code: each works once

    objects = models.Manager["SecondFactor"]()

    class Meta:
        constraints = [
            models.UniqueConstraint(name="accounts_secondfactor_one_per_user", fields=["user"]),
        ]

    def __str__(self) -> str:
        return f"second factor of user {self.user_id}"

    @property
    def key(self) -> bytes:
        """The key that the app holds. Raises CannotOpen."""
        return open_factor_key(self.sealed_key, factor_row(self.user_id))

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Saves the row. A new one gets a random key."""
        if not self.sealed_key:
            key = os.urandom(FACTOR_KEY_BYTES)
            self.sealed_key = seal(key, Context.SECOND_FACTOR, factor_row(self.user_id))
        super().save(*args, **kwargs)

    def verify_token(self, token: str) -> bool:
        """Whether the code is right. A right code is used up; a wrong one starts a wait.

        Call it with the row locked, so that two requests cannot use one code.
        """
        if not self.verify_is_allowed()[0]:
            return False
        if self._matches_app(token) or self._takes_backup_code(token):
            self.throttle_reset()
            return True
        self.throttle_increment()
        return False

    def get_throttle_factor(self) -> int:
        return 1

    def _matches_app(self, token: str) -> bool:
        if not (token.isascii() and token.isdecimal() and len(token) == CODE_LENGTH):
            return False
        clock = TOTP(self.key, drift=self.drift)
        clock.time = time.time()
        if not clock.verify(int(token), tolerance=1, min_t=self.last_step + 1):
            return False
        self.drift, self.last_step = clock.drift, clock.t()
        return True

    def _takes_backup_code(self, token: str) -> bool:
        return bool(self.backup_codes.filter(digest=BackupCode.digest_of(token)).delete()[0])


class BackupCode(models.Model):
    """A code that replaces the app once. It has 80 random bits, so a plain SHA-256 is safe."""

    factor = models.ForeignKey(SecondFactor, on_delete=models.CASCADE, related_name="backup_codes")
    digest = models.CharField(max_length=64)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="accounts_backupcode_once", fields=["factor", "digest"]),
        ]

    def __str__(self) -> str:
        return f"backup code {self.pk}"

    @staticmethod
    def digest_of(code: str) -> str:
        """The digest of a code, in whatever case and with whatever dashes it is written."""
        return sha256(code.replace("-", "").lower().encode()).hexdigest()


class RequestRecord(models.Model):
    """A purchase attempt, or another refused request (accounts/api_access/request_records.py).

    No foreign key constraints: writing it must not lock or look up a client. `account_id` is the
    account at that time.
    """

    at = models.DateTimeField()
    request_id = models.UUIDField("request ID")
    client = models.ForeignKey(
        ApiClient, on_delete=models.CASCADE, db_constraint=False, db_index=False, related_name="+"
    )
    account = models.ForeignKey(
        Account,
        on_delete=models.CASCADE,
        null=True,
        db_constraint=False,
        db_index=False,
        related_name="+",
    )
    method = models.CharField(max_length=METHOD_LENGTH)
    path = models.CharField(max_length=PATH_LENGTH)
    status = models.PositiveSmallIntegerField()
    code = models.CharField(max_length=WORD_LENGTH, blank=True)
    reason = models.CharField(max_length=WORD_LENGTH, blank=True)
    order_reference = models.CharField(max_length=REFERENCE_LENGTH, null=True)
    idempotency_key = models.CharField(max_length=IDEMPOTENCY_KEY_LENGTH, null=True)
    milliseconds = models.PositiveIntegerField("duration (ms)")
    # Messages by the name of a wrong field, without values: {"player_id": ["Must match …"]}.
    problems = models.JSONField(default=dict, db_default=models.Value({}, models.JSONField()))

    class Meta:
        verbose_name = "request"
        indexes = [
            models.Index(name="accounts_request_of_account", fields=["account", "id"]),
            # Each record is written once and seldom looked for. B-trees of random values would
            # cost more than the rows themselves. Filters name the groups of 16 pages that may hold
            # a value. Autovacuum summarises new groups; until then they are read
            # (docs/decisions/0054-request-records.md).
            BrinIndex(
                name="accounts_request_by_value",
                fields=["request_id", "order_reference", "idempotency_key"],
                opclasses=[f"{kind}_bloom_ops {FILTER}" for kind in ("uuid", "text", "text")],
                pages_per_range=16,
                autosummarize=True,
            ),
        ]

    def __str__(self) -> str:
        return f"Request {self.request_id}"

    @property
    def is_replay(self) -> bool:
        """Whether the response was the stored one of an earlier purchase."""
        return self.status == HTTPStatus.CREATED and self.order_reference is None

"""The settings of company sign-in (docs/operate/company-sign-in.md), read from the environment.

It is off, and nothing else of it is loaded, unless COMPANY_SIGN_IN_ISSUER is set.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from core.backoffice.staff_roles import FORMER_ROLES, StaffRole
from core.environment.env import StrictEnv
from core.environment.stop import stop_start

LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class CompanySignIn:
    """The settings of sign-in at the company's OpenID Connect provider.

    roles: the name of our role by the value of the roles claim.
    second_factors: pairs of a claim, `amr` or `acr`, and a value that counts as a second factor.
    links_by_email: whether a first sign-in may take over the staff account with its email.
    only: whether passwords of staff are refused, except for the usernames in `break_glass`.
    """

    issuer: str
    client_id: str
    client_secret: str
    company: str
    scopes: str
    name_claim: str
    roles_claim: str
    roles: Mapping[str, str]
    second_factors: frozenset[tuple[str, str]]
    links_by_email: bool
    only: bool
    break_glass: frozenset[str]

    def allows_password(self, username: str) -> bool:
        """Whether this member of staff may sign in with a password."""
        return not self.only or username in self.break_glass


def company_sign_in(env: StrictEnv) -> CompanySignIn | None:
    """The settings, or None when company sign-in is off. An invalid value ends the process."""
    issuer = env.str("COMPANY_SIGN_IN_ISSUER", "")
    settings = CompanySignIn(
        issuer=issuer,
        client_id=env.str("COMPANY_SIGN_IN_CLIENT_ID", ""),
        client_secret=env.str("COMPANY_SIGN_IN_CLIENT_SECRET", ""),
        company=env.str("COMPANY_SIGN_IN_COMPANY", "your company account"),
        scopes=env.str("COMPANY_SIGN_IN_SCOPES", "openid email profile"),
        name_claim=env.str("COMPANY_SIGN_IN_NAME_CLAIM", "email"),
        roles_claim=env.str("COMPANY_SIGN_IN_ROLES_CLAIM", "groups"),
        roles=_roles(env.list("COMPANY_SIGN_IN_ROLES", default=[])),
        second_factors=_factors(env.list("COMPANY_SIGN_IN_SECOND_FACTORS", default=[])),
        links_by_email=env.bool("COMPANY_SIGN_IN_LINKS_BY_EMAIL", False),
        only=env.bool("COMPANY_SIGN_IN_ONLY", False),
        break_glass=frozenset(env.list("COMPANY_SIGN_IN_BREAK_GLASS", default=[])),
    )
    if not issuer:
        if settings.only:
            stop_start("COMPANY_SIGN_IN_ONLY", "is set, but COMPANY_SIGN_IN_ISSUER is not.")
        return None
    address = urlsplit(issuer)
    if not (address.scheme == "https" or address.hostname in LOCAL_HOSTS) or not address.hostname:
        stop_start("COMPANY_SIGN_IN_ISSUER", "must begin with https:// and contain a host.")
    if not settings.client_id:
        stop_start("COMPANY_SIGN_IN_CLIENT_ID", "must be set with COMPANY_SIGN_IN_ISSUER.")
    if not settings.client_secret:
        stop_start("COMPANY_SIGN_IN_CLIENT_SECRET", "must be set with COMPANY_SIGN_IN_ISSUER.")
    if not settings.roles:
        stop_start("COMPANY_SIGN_IN_ROLES", "must give at least one role: value=Operator.")
    if "openid" not in settings.scopes.split():
        stop_start("COMPANY_SIGN_IN_SCOPES", "must contain openid.")
    return settings


def _roles(pairs: list[str]) -> dict[str, str]:
    """`["desk=Operator"]` as a dictionary."""
    names = [role.value for role in StaffRole]
    roles = {}
    for pair in pairs:
        value, _, name = (part.strip() for part in pair.rpartition("="))
        if not value or name not in (*names, *FORMER_ROLES):
            known = ", ".join(names)
            stop_start("COMPANY_SIGN_IN_ROLES", f"must be value=role pairs. Roles are {known}.")
        roles[value] = name
    return roles


def _factors(pairs: list[str]) -> frozenset[tuple[str, str]]:
    """`["amr=mfa"]` as pairs."""
    factors = set()
    for pair in pairs:
        claim, _, value = (part.strip() for part in pair.partition("="))
        if claim not in ("amr", "acr") or not value:
            stop_start("COMPANY_SIGN_IN_SECOND_FACTORS", "must be like amr=mfa or acr=phr.")
        factors.add((claim, value))
    return frozenset(factors)

"""What every app declares for the back office (config/backoffice.py), from the lowest layer up."""

from accounts import backoffice as accounts
from audit import backoffice as audit
from catalogue import backoffice as catalogue
from config import backoffice as config
from idempotency import backoffice as idempotency
from merchants import backoffice as merchants
from operators import backoffice as operators
from orders import backoffice as orders
from topups import backoffice as topups
from wallets import backoffice as wallets

BACK_OFFICES = [
    config.BACK_OFFICE,
    audit.BACK_OFFICE,
    accounts.BACK_OFFICE,
    catalogue.BACK_OFFICE,
    wallets.BACK_OFFICE,
    idempotency.BACK_OFFICE,
    topups.BACK_OFFICE,
    orders.BACK_OFFICE,
    merchants.BACK_OFFICE,
    operators.BACK_OFFICE,
]
SEALED = [column for app in BACK_OFFICES for column in app.sealed]
RIGHTS = {name: right for app in BACK_OFFICES for name, right in app.rights.items()}

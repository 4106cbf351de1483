#!/bin/sh
# Downloads the books of a month: the statement, the signed
# statement, the orders and the prices. FROM and TO are days such as 2026-10-01.
set -eu

download() {
    # curl reads the key from a pipe. The list of processes does not show
    # it. curl waits as long as the service asks, and tries again.
    printf 'header = "Authorization: Bearer %s"\n' "${VOUCHER_BOOK_KEY:?is not set}" |
        curl --config - --silent --show-error --fail-with-body --retry 3 \
            --output "$1" "${VOUCHER_SITE:?is not set}/merchant/$2"
}

period="since=${FROM:?is not set}&until=${TO:?is not set}"
download statement.csv "wallet/statement.csv?$period"
download orders.csv "orders/orders.csv?$period"
download prices.csv "prices/prices.csv"
# Fails with a reason if no entry of the period is signed yet.
download signed-statement.json "wallet/signed-statement.json?$period"

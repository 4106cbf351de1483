#!/bin/sh
# Checks the key, reads the balance and lists what you can buy.
set -eu

call() {
    # The key goes to curl through a pipe, so the list of processes does not show it.
    printf 'header = "Authorization: Bearer %s"\n' "$VOUCHER_API_KEY" |
        curl --config - --silent --show-error --max-time 30 "$VOUCHER_BASE_URL$1"
    echo
}

call /ping
call /balance
call "/products?in_stock=1&per_page=10"
call "/topup-products?per_page=10"

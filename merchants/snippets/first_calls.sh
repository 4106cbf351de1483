#!/bin/sh
# Checks the API key, reads the balance and lists what you can buy.
# You can paste this file into a terminal: in zsh, after
# setopt interactive_comments.

call() {
    # curl reads the API key from a pipe. The list of processes does not
    # show it.
    printf 'header = "Authorization: Bearer %s"\n' "${VOUCHER_API_KEY:?is not set}" |
        curl --config - --silent --show-error --max-time 35 \
            "${VOUCHER_BASE_URL:?is not set}$1"
    echo
}

call /ping
call /balance
call "/products?in_stock=1&per_page=10"
call "/topup-products?per_page=10"

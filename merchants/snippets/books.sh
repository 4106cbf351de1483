#!/bin/sh
# Downloads the books of a month: the statement, the signed
# statement, the orders and the prices.
#
#   sh books.sh 2026-10-01 2026-10-31
#
# The days are the first and the last, in UTC.
set -eu

if [ $# != 2 ]; then
    echo "Usage: books.sh 2026-10-01 2026-10-31" >&2
    exit 2
fi

# Saves the response of the address $2 as the file $1; prints its status.
get() {
    # curl reads the key from a pipe. The list of processes does not show
    # it. curl waits as long as the service asks, and tries again.
    printf 'header = "Authorization: Bearer %s"\n' "${VOUCHER_BOOK_KEY:?is not set}" |
        curl --config - --silent --show-error --fail-with-body --retry 3 \
            --header "Prefer: respond-async" --write-out '%{http_code}' \
            --output "$1" "${VOUCHER_SITE:?is not set}$2"
}

# Prints the value $1 of the JSON in the file $2.
value() { sed -n "s/.*\"$1\": \"\{0,1\}\([^\",}]*\).*/\1/p" "$2"; }

download() {
    status=$(get "$1" "/merchant/$2")
    [ "$status" = 202 ] || return 0
    # The file is large: it is built first, and then comes in parts.
    file=$(value file "$1")
    while status=$(get "$1" "$file") && [ "$status" = 202 ]; do sleep 5; done
    [ "$status" = 200 ] || return 1
    parts=$(value parts "$1")
    : >"$1"
    number=0
    while [ "$number" -lt "$parts" ]; do
        status=$(get "$1.part" "$file$number/")
        cat "$1.part" >>"$1"
        number=$((number + 1))
    done
    rm "$1.part"
}

period="since=$1&until=$2"
download statement.csv "wallet/statement.csv?$period"
download orders.csv "orders/orders.csv?$period"
download prices.csv "prices/prices.csv"
# Fails with a reason if no entry of the period is signed yet.
download signed-statement.json "wallet/signed-statement.json?$period"

#!/bin/sh
# Buys once, however often it has to ask.
#
#   sh buy.sh '{"product_id": 10, "quantity": 1}' IDEMPOTENCY_KEY
#
# Make a new key for each purchase (uuidgen) and keep it before you start. If this ends with 2, the
# outcome is unknown: start it again with the same key. 0: the order is printed. 1: nothing was
# charged, and the answer is printed.
set -eu

body=$1 key=$2
pause=${VOUCHER_PAUSE_SECONDS:-3}
answer=$(mktemp)
trap 'rm -f "$answer"' EXIT

# call [curl's options] URL: the answer goes to the file, its status to $status; 000 where none came,
# or only a part of it.
call() {
    : >"$answer"
    status=$(
        printf 'header = "Authorization: Bearer %s"\n' "$VOUCHER_API_KEY" |
            curl --config - --silent --max-time 30 --output "$answer" --write-out '%{http_code}' "$@"
    ) || status=000
}

field() { sed -n "s/.*\"$1\": *\"\{0,1\}\([A-Za-z0-9_]*\).*/\1/p" "$answer" | head -n 1; }

for attempt in 1 2 3 4 5 6 7 8 9 10; do
    call "$VOUCHER_BASE_URL/orders" --data "$body" \
        --header "Content-Type: application/json" --header "Idempotency-Key: $key"
    if [ "$status" = 201 ]; then
        cat "$answer"
        exit 0
    fi
    case $status in 4??) code=$(field code) ;; *) code=unknown ;; esac # the outcome is
    case $code in
        unknown | request_in_progress) sleep "$pause" ;;
        rate_limited) sleep "$(field retry_after_seconds)" ;;
        request_abandoned)
            call "$VOUCHER_BASE_URL/orders/$(field reference)"
            if [ "$status" = 200 ]; then
                cat "$answer"
                exit 0
            fi
            sleep "$pause"
            ;;
        *) # refused: error.code and error.reason say why; mend that first
            cat "$answer"
            exit 1
            ;;
    esac
done
echo "The outcome is unknown. Start again with the same key." >&2
exit 2

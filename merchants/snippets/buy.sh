#!/bin/sh
# Buys once, however often it must retry.
#
#   sh buy.sh '{"product_id": 10, "quantity": 1}' IDEMPOTENCY_KEY
#
# Or paste this file into a terminal (in zsh, after setopt interactive_comments)
# and run:
#
#   buy '{"product_id": 10, "quantity": 1}' IDEMPOTENCY_KEY
#
# Make the idempotency key from your own order number, such as order-1042:
# a new one for each purchase. Store it before you start.
# Exit codes:
#   0  bought; the order is printed
#   1  refused, and this run charged nothing; the response is printed
#   2  the outcome is unknown; start again with the same idempotency key
#   64 started wrongly, and this run sent nothing; the reason is printed
# After 2 or a crash, wait 90 seconds, and start it again with the same key. Of the
# refusals, only order_refused is final then: after any other, start it again.
buy() ( # runs in a subshell, so exit does not close your terminal
    set -u # without -e, which would end with 1 after a purchase
    export LC_ALL=C

    fail() {
        echo "$1" >&2
        exit 64
    }
    # Whether the text is not empty, and consists of these characters.
    has_only() { [ -n "$2" ] && [ "$(printf %s "$2" | tr -d "$1" | wc -c)" -eq 0 ]; }
    usage="Usage: buy.sh BODY IDEMPOTENCY_KEY: a JSON object and printable ASCII"

    [ -n "${VOUCHER_BASE_URL:-}" ] || fail "Set VOUCHER_BASE_URL"
    has_only '!-~' "${VOUCHER_API_KEY:-}" || # never print it
        fail "Set VOUCHER_API_KEY to the key only, without spaces or line ends"
    [ $# = 2 ] || fail "$usage"
    body=$1 key=$2
    has_only ' -~' "$key" || fail "$usage"
    case $(printf %s "$body" | tr -d "[:space:]") in "{"*"}") ;; *) fail "$usage" ;; esac
    second=${VOUCHER_SECOND:-1} # tests set a shorter one

    # call [curl options] URL: sets $answer to the response and $status to its
    # status, which is 000 if the response is incomplete. It can contain
    # codes, so no file holds it.
    call() {
        answer=$(
            printf 'header = "Authorization: Bearer %s"\n' "$VOUCHER_API_KEY" |
                curl --config - --silent --max-time 35 --write-out '\n%{http_code}' "$@"
        ) || answer=000
        status=$(printf '%s\n' "$answer" | tail -n 1)
        answer=${answer%"$status"}
    }

    field() {
        printf %s "$answer" |
            sed -n "s/.*\"$1\": *\"\{0,1\}\([A-Za-z0-9_]*\).*/\1/p" | head -n 1
    }

    # The code of the service's own {success: false, error: {code}}.
    error_code() {
        printf %s "$answer" |
            sed -n 's/^{"success": *false, *"error": *{"code": *"\([a-z_]*\)".*/\1/p'
    }

    is_success() {
        [ "$status" = "$1" ] &&
            printf %s "$answer" | grep -q '^{"success": *true, *"data": *{'
    }

    # The value of an expression, and whether a condition holds.
    compute() { awk "BEGIN { srand($(date +%s)$$); print $1 }"; }
    holds() { [ "$(compute "($1)")" = 1 ]; }

    started=$(date +%s)
    tries=0
    unknown_at= # when the last attempt with an unknown outcome ended
    while :; do
        sent=$(date +%s)
        call "$VOUCHER_BASE_URL/orders" --data "$body" \
            --header "Content-Type: application/json" --header "Idempotency-Key: $key"
        if is_success 201; then
            printf %s "$answer" || exit 2
            exit 0
        fi
        # Only the service's own JSON settles a purchase. After every other
        # response the outcome is unknown: code=unclear.
        code=
        # The pause doubles, up to 30 seconds, with a random part.
        delay=$(compute "$second * (0.5 + rand() / 2) * (2 ^ $tries < 30 ? 2 ^ $tries : 30)")
        tries=$((tries + 1))
        case $status in 4??) code=$(error_code) ;; esac
        code=${code:-unclear}
        case $code in
            unclear | request_in_progress | request_abandoned) unknown_at=$(date +%s) ;;
        esac
        case $code in
            # A 429 of a proxy does not say how long to wait.
            unclear) [ "$status" != 429 ] || delay=$(compute "30 * $second") ;;
            request_in_progress) ;;
            rate_limited) delay=$(field retry_after_seconds) ;;
            request_abandoned)
                call "$VOUCHER_BASE_URL/orders/$(field reference)"
                if is_success 200; then
                    printf %s "$answer" || exit 2
                    exit 0
                fi
                ;;
            *) # refused: error.code and error.reason say what to fix
                late="${unknown_at:-0} + 90 * $second"
                if [ "$code" = order_refused ] && holds "$sent < $late"; then
                    # A refusal does not bind the key: an earlier attempt,
                    # which may arrive for 90 seconds, could still buy.
                    delay=$(compute "$late - $(date +%s) + 1")
                    holds "$delay > 0" || delay=0
                elif [ -z "$unknown_at" ] || [ "$code" = order_refused ]; then
                    printf %s "$answer"
                    exit 1
                else # other errors say nothing about earlier attempts
                    printf %s "$answer" >&2
                    break
                fi
                ;;
        esac
        # request_in_progress can last five minutes.
        if holds "$(date +%s) + ${delay:=1} - $started > 360 * $second"; then break; fi
        echo "HTTP status $status: trying again" >&2
        sleep "$delay" || exit 2
    done
    echo "The outcome is unknown. Start again with the same idempotency key." >&2
    exit 2
)

buy "$@"

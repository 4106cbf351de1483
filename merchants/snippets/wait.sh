#!/bin/sh
# Waits until top-ups are delivered, or have failed and are refunded.
#
#   sh wait.sh REFERENCE...
#
# The service sends no callbacks, so this program polls. One request reads
# the 100 newest orders; older ones are read one by one, one a second. Keep
# the pause within your rate limit.
# A line says how each top-up ended: REFERENCE completed, REFERENCE refunded
# or REFERENCE not refunded. For the last one, contact support before you buy
# it again.
# Exit codes:
#   0  each top-up was delivered, or it failed and was refunded
#   1  one was not refunded, or cannot be read; a line says why
#   64 started wrongly, and this run sent nothing; the reason is printed
set -u
export LC_ALL=C

fail() {
    echo "$1" >&2
    exit 64
}
# Whether the text is not empty, and consists of these characters.
has_only() { [ -n "$2" ] && [ "$(printf %s "$2" | tr -d "$1" | wc -c)" -eq 0 ]; }
# Whether the text is a positive number.
is_seconds() {
    has_only 0-9. "$1" && echo "$1" | grep -Ex '[0-9]{1,6}(\.[0-9]+)?' | grep -q '[1-9]'
}

[ -n "${VOUCHER_BASE_URL:-}" ] || fail "Set VOUCHER_BASE_URL"
has_only '!-~' "${VOUCHER_API_KEY:-}" || # never print it
    fail "Set VOUCHER_API_KEY to the key only, without spaces or line ends"
[ $# -gt 0 ] || fail "Usage: wait.sh REFERENCE..."
for reference; do
    has_only '0-9A-Za-z_-' "$reference" || fail "Usage: wait.sh REFERENCE..."
done
pause=${VOUCHER_PAUSE_SECONDS:-30}
# How long it waits for a refund, which normally takes seconds, and how long
# it goes on while no order can be read.
patience=${VOUCHER_PATIENCE_SECONDS:-900}
is_seconds "$pause" || fail "Set VOUCHER_PAUSE_SECONDS to a number of seconds"
is_seconds "$patience" || fail "Set VOUCHER_PATIENCE_SECONDS to a number of seconds"

# Whether $patience seconds have passed since second $1.
is_over() { [ "$(awk "BEGIN { print ($(date +%s) - $1 >= $patience) }")" = 1 ]; }

unreadable_since= # when a request failed, if no order was read since
# Ends the program if no order was read for $patience seconds.
try_again() {
    : "${unreadable_since:=$(date +%s)}"
    if is_over "$unreadable_since"; then
        echo "Gave up, because no order could be read: check VOUCHER_BASE_URL" >&2
        exit 1
    fi
    echo "HTTP status $status: trying again" >&2
}

# Sets $answer to the response and $status to its status, which is 000 if the
# response is incomplete. It can contain codes, so no file holds it.
request() {
    # curl reads the key from a pipe. The list of processes does not show it.
    answer=$(
        printf 'header = "Authorization: Bearer %s"\n' "$VOUCHER_API_KEY" |
            curl --config - --silent --max-time 35 \
                --write-out '\n%{http_code}' "$VOUCHER_BASE_URL$1"
    ) || answer=000
    status=$(printf '%s\n' "$answer" | tail -n 1)
    answer=${answer%"$status"}
}

# Sets $orders to lines of REFERENCE STATUS REFUNDED. Fails if they cannot be
# read now. Waits and repeats the request after 429. Ends the program if the
# service says that waiting does not help, such as for an unknown reference.
# An answer of a proxy does not say that.
read_orders() {
    orders=
    request "$1"
    while [ "$status" = 429 ]; do
        try_again
        # A 429 of a proxy does not say how long to wait.
        after=$(printf %s "$answer" | sed -n 's/.*"retry_after_seconds": *\([0-9]*\).*/\1/p')
        after=${after:-0}
        sleep "$(awk "BEGIN { print ($pause > $after ? $pause : $after) }")" || exit 1
        request "$1"
    done
    if [ "$status" = 200 ] &&
        printf %s "$answer" | grep -q '^{"success": *true, *"data": *{'; then
        # Each order begins a line. Only top-ups have `refunded`.
        orders=$(printf %s "$answer" | sed 's/{"reference": */\
/g' | sed -n '
            s/^"\([^"]*\)".*"status": *"\([a-z_]*\)".*"refunded": *\([a-z]*\).*/\1 \2 \3/p
            t
            s/^"\([^"]*\)".*"status": *"\([a-z_]*\)".*/\1 \2 none/p')
        return 0
    fi
    case $status in
        4??)
            # The code of the service's own {success: false, error: {code}}.
            code=$(printf %s "$answer" | sed -n \
                's/^{"success": *false, *"error": *{"code": *"\([a-z_]*\)".*/\1/p')
            if [ -n "$code" ]; then
                echo "$1 cannot be read: $code" >&2
                exit 1
            fi
            ;;
    esac
    try_again
    return 1
}

exit_code=0
failed= # REFERENCE:TIME of each top-up that had failed
while :; do
    newest= waiting= gap=0
    is_readable=true
    if [ $# -gt 1 ]; then
        read_orders "/orders?per_page=100" || is_readable=false
        newest=$orders
    fi
    for reference; do
        order=$(printf '%s\n' "$newest" | grep "^$reference ")
        if [ -z "$order" ] && $is_readable; then
            sleep "$gap"
            gap=1
            read_orders "/orders/$reference"
            order=$orders
        fi
        [ -z "$order" ] || unreadable_since=
        case $order in
            "$reference completed "*) echo "$reference completed" ;;
            "$reference failed true") echo "$reference refunded" ;;
            "$reference failed "*)
                case $failed in
                    *" $reference:"*) ;;
                    *) failed="$failed $reference:$(date +%s) " ;;
                esac
                failed_at=${failed##* "$reference:"}
                if is_over "${failed_at%% *}"; then
                    echo "$reference not refunded"
                    exit_code=1
                else
                    waiting="$waiting $reference"
                fi
                ;;
            *) waiting="$waiting $reference" ;;
        esac
    done
    # shellcheck disable=SC2086
    set -- $waiting
    [ $# -gt 0 ] || exit "$exit_code"
    sleep "$pause" || exit 1
done

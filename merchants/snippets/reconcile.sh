#!/bin/sh
# Compares your purchases with the statement.
#
#   sh reconcile.sh purchases 2026-10-01 2026-10-31
#
# The file order-1042.json in the folder purchases is what the program that
# buys printed for the idempotency key order-1042. It is empty while the
# outcome is unknown. The days are in UTC.
# Exit codes:
#   0  no difference
#   1  each difference is printed
#   2  there is no comparison; the reason is printed
set -eu

fail() {
    echo "$1" >&2
    exit 2
}

[ $# = 3 ] || fail "Usage: reconcile.sh purchases 2026-10-01 2026-10-31"
folder=$1 first=$2 last=$3
for day in "$first" "$last"; do
    case $day in
        [0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]) ;;
        *) fail "Not a day such as 2026-10-31: $day" ;;
    esac
done
[ -n "${VOUCHER_SITE:-}" ] || fail "Set VOUCHER_SITE"
case ${VOUCHER_BOOK_KEY:-} in # never print it
    "" | *[[:space:][:cntrl:]]*)
        fail "Set VOUCHER_BOOK_KEY to the key only, without spaces or line ends"
        ;;
esac
path=/merchant/wallet/statement.json
statement=$(mktemp) || exit 2
trap 'rm -f "$statement"' EXIT
trap 'exit 2' HUP INT TERM

[ -d "$folder" ] || fail "There is no folder $folder"
# curl reads the key from a pipe. The list of processes does not show it.
status=$(
    printf 'header = "Authorization: Bearer %s"\n' "$VOUCHER_BOOK_KEY" |
        curl --config - --silent --show-error --max-time 60 \
            --output "$statement" --write-out '%{http_code}' \
            "$VOUCHER_SITE$path?since=$first&until=$last&kind=purchase"
) || exit 2
[ "$status" = 200 ] || fail "HTTP status $status: $(cat "$statement")"
[ "$(tail -n 1 "$statement")" = "]}" ] || fail "The statement is incomplete"

# The statement has one line for each debit, oldest first.
set -- "$folder"/*.json
[ -e "$1" ] || set --
for file; do
    [ -f "$file" ] && [ -r "$file" ] || fail "$file cannot be read"
done
LC_ALL=C awk -v first="$first" -v last="$last" -v statement="$statement" '
    # The value of a field of this line of JSON.
    function field(name, text) {
        if (!match($0, "\"" name "\": *(\"[^\"]*\"|[^,}]*)")) return ""
        text = substr($0, RSTART, RLENGTH)
        sub(/^"[^"]*": */, "", text)
        gsub(/"/, "", text)
        return text == "null" ? "" : text
    }
    function fail(reason) {
        print reason >"/dev/stderr"
        failed = 1
        exit 2
    }
    function report(line) {
        print line
        differences++
    }
    FILENAME == statement && field("order_reference") != "" {
        reference[++debits] = field("order_reference")
        amount[debits] = field("amount")
        sub(/^-/, "", amount[debits])
        if (amount[debits] !~ /^[0-9.]+$/) fail("Not an amount: " amount[debits])
        debited[reference[debits]] = amount[debits]
        whose[debits] = field("idempotency_key") ", " field("client")
        key[debits] = field("idempotency_key")
    }
    FILENAME != statement && NF {
        answered[FILENAME] = 1
        if (/^[{]("success": *false, *"error": *[{])?"code": *"[a-z_]+".*[}][ \r]*$/) next # refused
        if (field("total_price") == "" || !/[}][ \r]*$/)
            fail(FILENAME " contains no response of the service")
        bought[FILENAME] = field("reference")
        total[FILENAME] = field("total_price")
        day[FILENAME] = substr(field("created_at"), 1, 10)
        known[bought[FILENAME]] = 1
    }
    END {
        if (failed) exit 2
        for (i = 1; i < ARGC - 1; i++) {
            file = ARGV[i]
            name = file
            sub(/.*\//, "", name)
            sub(/\.json$/, "", name)
            order = bought[file]
            if (!answered[file]) report("open: " name)
            else if (order == "") refused[name] = 1
            else if (stored[order]++) report("one order twice: " order ", " name)
            else if (!(order in debited)) {
                if (total[file] + 0 == 0) continue # a replacement has no debit
                if (day[file] == "" || (day[file] >= first && day[file] <= last))
                    report("no debit: " order ", " name)
            } else if (debited[order] + 0 != total[file] + 0)
                report("another amount: " order ", " name ", " \
                    total[file] " here, " debited[order] " debited")
        }
        for (i = 1; i <= debits; i++) {
            if (seen[reference[i]]++) report("debited twice: " reference[i] ", " key[i])
            else if (key[i] in refused)
                report("bought, not refused: " reference[i] ", " key[i] ", " amount[i] " debited")
            else if (!(reference[i] in known))
                report("unknown here: " reference[i] ", " whose[i] ", " amount[i] " debited")
        }
        printf "%d purchases, %d debits, %d differences\n", ARGC - 2, debits, differences
        exit differences > 0
    }
' "$@" "$statement"

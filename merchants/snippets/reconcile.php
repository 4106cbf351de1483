<?php
// Compares your purchases with the statement. It needs only PHP 8.1+.
//
//   php reconcile.php purchases 2026-10-01 2026-10-31
//
// The file order-1042.json in the folder purchases is what the program that
// buys printed for the idempotency key order-1042. It is empty while the
// outcome is unknown. The days are in UTC.
// Exit codes:
//   0  no difference
//   1  each difference is printed
//   2  there is no comparison; the reason is printed
//
// Amounts become binary floats in json_decode. That is enough to compare them,
// not to calculate with them.

/** The orders by idempotency key. Null means that the outcome is unknown. */
function read_purchases(string $folder): array
{
    if (!is_dir($folder)) {
        throw new RuntimeException("There is no folder $folder");
    }
    $purchases = [];
    foreach (glob("$folder/*.json") as $file) {
        $text = trim(file_get_contents($file));
        $purchases[basename($file, ".json")] = $text === "" ? null : read_answer($text, $file);
    }
    return $purchases;
}

/** The order, or the error of a refusal. */
function read_answer(string $text, string $file): array
{
    $answer = json_decode($text, true);
    // Some programs print the whole response.
    $answer = $answer["data"] ?? $answer["error"] ?? $answer;
    if (!isset($answer["total_price"]) && !isset($answer["code"])) {
        throw new RuntimeException("$file contains no response of the service");
    }
    return $answer;
}

/** The debits of the account's statement, oldest first. */
function read_debits(string $first, string $last): array
{
    $context = stream_context_create(["http" => [
        "header" => ["Authorization: Bearer " . getenv("VOUCHER_BOOK_KEY")],
        "ignore_errors" => true,
        "follow_location" => 0,
        "timeout" => 60,
    ]]);
    $path = "/merchant/wallet/statement.json?since=$first&until=$last&kind=purchase";
    $text = file_get_contents(getenv("VOUCHER_SITE") . $path, false, $context);
    $status = $http_response_header[0] ?? "no response";
    if (!str_contains($status, " 200 ")) {
        throw new RuntimeException("$status: $text");
    }
    return json_decode($text, true, flags: JSON_THROW_ON_ERROR)["entries"];
}

/** One line for each difference. */
function compare(array $purchases, array $debits, string $first, string $last): array
{
    $differences = [];
    $byReference = array_column($debits, null, "order_reference");
    $known = [];
    $refused = [];
    foreach ($purchases as $key => $order) {
        if ($order === null) {
            $differences[] = "open: $key";
            continue;
        }
        if (!isset($order["total_price"])) {
            $refused[$key] = true;
            continue;
        }
        ["reference" => $reference, "total_price" => $total] = $order;
        $debit = $byReference[$reference] ?? null;
        $day = substr(($order["created_at"] ?? "") ?: $first, 0, 10);
        if (isset($known[$reference])) {
            $differences[] = "one order twice: $reference, $key";
        } elseif ($debit === null) {
            // A replacement costs 0 and has no debit.
            if ((float) $total && $first <= $day && $day <= $last) {
                $differences[] = "no debit: $reference, $key";
            }
        } elseif (-$debit["amount"] != $total) {
            $amount = -$debit["amount"];
            $differences[] = "another amount: $reference, $key, $total here, $amount debited";
        }
        $known[$reference] = true;
    }
    $seen = [];
    foreach ($debits as $debit) {
        ["order_reference" => $reference, "idempotency_key" => $key] = $debit;
        $amount = -$debit["amount"];
        if (isset($seen[$reference])) {
            $differences[] = "debited twice: $reference, $key";
        } elseif (isset($refused[$key ?? ""])) {
            $differences[] = "bought, not refused: $reference, $key, $amount debited";
        } elseif (!isset($known[$reference])) {
            $differences[] = "unknown here: $reference, $key, {$debit['client']}, $amount debited";
        }
        $seen[$reference] = true;
    }
    return $differences;
}

/** Throws a RuntimeException if the program was started wrongly. */
function check(array $arguments): void
{
    if (count($arguments) !== 3) {
        throw new RuntimeException("Usage: reconcile.php purchases 2026-10-01 2026-10-31");
    }
    foreach (array_slice($arguments, 1) as $day) {
        if (!preg_match('/^\d{4}-\d\d-\d\d$/D', $day)) {
            throw new RuntimeException("Not a day such as 2026-10-31: $day");
        }
    }
    if (!getenv("VOUCHER_SITE")) {
        throw new RuntimeException("Set VOUCHER_SITE");
    }
    if (!preg_match('/^[!-~]+$/D', (string) getenv("VOUCHER_BOOK_KEY"))) { // never print it
        $reason = "Set VOUCHER_BOOK_KEY to the key only, without spaces or line ends";
        throw new RuntimeException($reason);
    }
}

set_error_handler(fn (int $level, string $text) => throw new ErrorException($text), E_WARNING);
try {
    check(array_slice($argv, 1));
    [, $folder, $first, $last] = $argv;
    $purchases = read_purchases($folder);
    $debits = read_debits($first, $last);
    $differences = compare($purchases, $debits, $first, $last);
} catch (Throwable $problem) {
    fwrite(STDERR, $problem->getMessage() . "\n");
    exit(2);
}
foreach ($differences as $line) {
    echo $line, "\n";
}
printf(
    "%d purchases, %d debits, %d differences\n",
    count($purchases),
    count($debits),
    count($differences),
);
exit($differences ? 1 : 0);

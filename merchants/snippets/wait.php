<?php
// Waits until top-ups are delivered, or have failed and are refunded. It
// needs only PHP 8.1+.
//
//   php wait.php REFERENCE...
//
// The service sends no callbacks, so this program polls. One request reads
// the 100 newest orders; older ones are read one by one, one a second. Keep
// the pause within your rate limit.
// A line says how each top-up ended: REFERENCE completed, REFERENCE refunded
// or REFERENCE not refunded. For the last one, contact support before you buy
// it again.
// Exit codes:
//   0  each top-up was delivered, or it failed and was refunded
//   1  one was not refunded, or cannot be read; a line says why
//   64 started wrongly, and this run sent nothing; the reason is printed

define("PAUSE", seconds("VOUCHER_PAUSE_SECONDS", "30"));
// How long it waits for a refund, which normally takes seconds, and how long
// it goes on while no order can be read.
define("PATIENCE", seconds("VOUCHER_PATIENCE_SECONDS", "900"));

/** Returns the number in a variable, or 0 if it is not a positive number. */
function seconds(string $name, string $usual): float
{
    $text = (string) getenv($name);
    $text = $text === "" ? $usual : $text;
    return preg_match('/^[0-9]{1,6}(\.[0-9]+)?$/D', $text) ? (float) $text : 0;
}

function pause(float $seconds): void
{
    usleep((int) ($seconds * 1_000_000));
}

function now(): float
{
    return hrtime(true) / 1e9;
}

$unreadableSince = null; // when a request failed, if no order was read since

/**
 * Returns the service's data, or null if it cannot be read now. Waits and
 * repeats the request after 429. Ends the program if the service says that
 * waiting does not help, such as for an unknown reference. An answer of a
 * proxy does not say that.
 */
function read(string $path): ?array
{
    global $unreadableSince;
    $context = stream_context_create(["http" => [
        "header" => [
            "Authorization: Bearer " . getenv("VOUCHER_API_KEY"),
            "Accept: application/json",
        ],
        "ignore_errors" => true,
        "follow_location" => 0,
        "timeout" => 35,
    ]]);
    while (true) {
        $text = @file_get_contents(getenv("VOUCHER_BASE_URL") . $path, false, $context);
        $status = 0;
        if ($text !== false && preg_match("/ (\d{3})/", $http_response_header[0] ?? "", $found)) {
            $status = (int) $found[1];
        }
        // The service's own JSON is {success: true, data} or
        // {success: false, error: {code}}.
        $answer = json_decode((string) $text, true);
        $success = is_array($answer) ? ($answer["success"] ?? null) : null;
        if ($status === 200 && $success === true && is_array($answer["data"] ?? null)) {
            return $answer["data"];
        }
        $error = $success === false ? ($answer["error"] ?? null) : null;
        $code = is_array($error) ? ($error["code"] ?? null) : null;
        if (is_string($code) && $status >= 400 && $status < 500 && $status !== 429) {
            fwrite(STDERR, "$path cannot be read: $code\n");
            exit(1);
        }
        $unreadableSince ??= now();
        if (now() - $unreadableSince >= PATIENCE) {
            fwrite(STDERR, "Gave up, because no order could be read: check VOUCHER_BASE_URL\n");
            exit(1);
        }
        fwrite(STDERR, "HTTP status " . ($status ?: "unknown") . ": trying again\n");
        if ($status !== 429) {
            return null;
        }
        // A 429 of a proxy does not say how long to wait.
        pause(max(PAUSE, $error["retry_after_seconds"] ?? 0));
    }
}

/** Yields the orders that can be read now, by reference. */
function current_orders(array $references): Generator
{
    global $unreadableSince;
    $newest = [];
    if (count($references) > 1) {
        $page = read("/orders?per_page=100");
        if ($page === null) {
            return;
        }
        $newest = array_column($page["items"], null, "reference");
    }
    $pause = 0;
    foreach ($references as $reference) {
        $order = $newest[$reference] ?? null;
        if ($order === null) {
            pause($pause);
            $pause = 1;
            $order = read("/orders/$reference");
        }
        if ($order !== null) {
            $unreadableSince = null;
            yield $reference => $order;
        }
    }
}

/** Prints how each top-up ended, and returns the exit code. */
function wait(array $waiting): int
{
    $failedAt = [];
    $exitCode = 0;
    while (true) {
        foreach (current_orders($waiting) as $reference => $order) {
            $end = null;
            if ($order["status"] === "completed") {
                $end = "completed";
            } elseif ($order["status"] === "failed") {
                $failedAt[$reference] ??= now();
                // `refunded` is true once the money is back in the wallet.
                if ($order["refunded"]) {
                    $end = "refunded";
                } elseif (now() - $failedAt[$reference] >= PATIENCE) {
                    $end = "not refunded";
                    $exitCode = 1;
                }
            }
            if ($end !== null) {
                echo "$reference $end\n";
                $waiting = array_diff($waiting, [$reference]);
            }
        }
        if (!$waiting) {
            return $exitCode;
        }
        pause(PAUSE);
    }
}

/** Ends before anything is sent. */
function fail(string $problem): never
{
    fwrite(STDERR, "$problem\n");
    exit(64);
}

if (!getenv("VOUCHER_BASE_URL")) {
    fail("Set VOUCHER_BASE_URL");
}
if (!preg_match('/^[!-~]+$/D', (string) getenv("VOUCHER_API_KEY"))) { // never print it
    fail("Set VOUCHER_API_KEY to the key only, without spaces or line ends");
}
$references = array_slice($argv, 1);
if (!$references || preg_grep('/^[0-9A-Za-z_-]+$/D', $references, PREG_GREP_INVERT)) {
    fail("Usage: wait.php REFERENCE...");
}
if (!PAUSE) {
    fail("Set VOUCHER_PAUSE_SECONDS to a number of seconds");
}
if (!PATIENCE) {
    fail("Set VOUCHER_PATIENCE_SECONDS to a number of seconds");
}
exit(wait(array_unique($references)));

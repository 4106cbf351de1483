<?php
// Buys once, however often it must retry. It needs only PHP 8.1+.
//
//   php buy.php '{"product_id": 10, "quantity": 1}' IDEMPOTENCY_KEY
//
// Make the idempotency key from your own order number, such as order-1042.
// Use a new key for each purchase, and store it before you start.
// Exit codes:
//   0  bought; the response is printed
//   1  refused, and this run charged nothing; the response is printed
//   2  the outcome is unknown; start again with the same idempotency key
//   64 started wrongly, and this run sent nothing; the reason is printed
// After 2 or a crash, wait 90 seconds, and start it again with the same key. Of the
// refusals, only order_refused is final then: after any other, start it again.
//
// Amounts become binary floats in json_decode. If you calculate with them,
// read them from the text of the response.

/** Returns the status, the service's own JSON and its text. Status 0: no complete response. */
function call(string $method, string $path, ?string $body = null, ?string $key = null): array
{
    $headers = ["Authorization: Bearer " . getenv("VOUCHER_API_KEY"), "Accept: application/json"];
    if ($body !== null) {
        array_push($headers, "Content-Type: application/json", "Idempotency-Key: $key");
    }
    $context = stream_context_create(["http" => [
        "method" => $method,
        "header" => $headers,
        "content" => $body ?? "",
        "ignore_errors" => true,
        "follow_location" => 0,
        "timeout" => 35,
    ]]);
    $text = @file_get_contents(getenv("VOUCHER_BASE_URL") . $path, false, $context);
    $status = 0;
    if ($text !== false && preg_match("/ (\d{3})/", $http_response_header[0] ?? "", $found)) {
        $status = (int) $found[1];
    }
    $answer = json_decode((string) $text, true);
    return is_from_service($answer) ? [$status, $answer, $text] : [$status, [], ""];
}

/** Whether it is {success: true, data} or {success: false, error: {code}}. */
function is_from_service(mixed $answer): bool
{
    if (!is_array($answer)) {
        return false;
    }
    if (($answer["success"] ?? null) === true) {
        return is_array($answer["data"] ?? null);
    }
    $error = $answer["error"] ?? null;
    return ($answer["success"] ?? null) === false && is_array($error)
        && is_string($error["code"] ?? null);
}

/** Returns the exit code, after it has printed the response. */
function buy(string $body, string $key): int
{
    $second = (float) (getenv("VOUCHER_SECOND") ?: "1"); // tests set a shorter one
    $now = fn (): float => hrtime(true) / 1e9;
    $unknownAt = null; // when the last attempt with an unknown outcome ended
    $ends = $now() + 360 * $second; // request_in_progress can last five minutes
    $late = 90 * $second; // as long, an attempt without a response may still arrive
    for ($whole = $second; ; $whole = min(2 * $whole, 30 * $second)) {
        $sent = $now();
        [$status, $answer, $text] = call("POST", "/orders", $body, $key);
        if ($status === 201 && ($answer["success"] ?? false)) {
            return bought($text);
        }
        // Only the service's own JSON settles a purchase. After every other
        // response the outcome is unknown.
        $isRefusal = $status >= 400 && $status < 500;
        $error = $isRefusal ? ($answer["error"] ?? null) : null;
        $code = $error["code"] ?? "unclear";
        // A 429 of a proxy does not say how long to wait.
        $wait = $status === 429 ? 30 * $second : $whole * mt_rand(500, 1000) / 1000;
        if ($code === "rate_limited") {
            $wait = $error["retry_after_seconds"] ?? $wait;
        } elseif (in_array($code, ["unclear", "request_in_progress", "request_abandoned"])) {
            $unknownAt = $now();
            if ($code === "request_abandoned") {
                // Bought already: read the order, do not buy again.
                [$status, $answer, $text] = call("GET", "/orders/" . $error["reference"]);
                if ($status === 200 && ($answer["success"] ?? false)) {
                    return bought($text);
                }
            }
        } elseif ($unknownAt !== null && $code === "order_refused" && $sent < $unknownAt + $late) {
            // A refusal does not bind the key: an earlier attempt could still buy.
            $wait = max(0, $unknownAt + $late + $second - $now());
        } else {
            if ($unknownAt === null || $code === "order_refused") {
                echo $text, "\n";
                return 1;
            }
            fwrite(STDERR, "$text\n"); // the error says nothing about earlier attempts
            break;
        }
        if ($now() + $wait > $ends) {
            break;
        }
        fwrite(STDERR, "HTTP status " . ($status ?: "unknown") . ": trying again\n");
        usleep((int) ($wait * 1_000_000));
    }
    fwrite(STDERR, "The outcome is unknown. Start again with the same idempotency key.\n");
    return 2;
}

/** Prints the order. The outcome counts as unknown if that fails. */
function bought(string $order): int
{
    return @fwrite(STDOUT, "$order\n") ? 0 : 2;
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
if ($argc !== 3 || !is_object(json_decode($argv[1])) || !preg_match('/^[ -~]+$/D', $argv[2])) {
    fail("Usage: buy.php BODY IDEMPOTENCY_KEY: a JSON object and printable ASCII");
}
exit(buy($argv[1], $argv[2]));

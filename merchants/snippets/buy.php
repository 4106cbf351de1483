<?php
// Buys once, however often it must retry. It needs only PHP 8.1+.
//
//   php buy.php '{"product_id": 10, "quantity": 1}' IDEMPOTENCY_KEY
//
// Create a new idempotency key for each purchase (bin2hex(random_bytes(16)))
// and store it before you start.
// Exit codes:
//   0  bought; the response is printed
//   1  refused, and this run charged nothing; the response is printed
//   2  the outcome is unknown; start again with the same idempotency key
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
        "timeout" => 30,
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
    $pause = (float) (getenv("VOUCHER_PAUSE_SECONDS") ?: "3");
    $unknown = false; // whether an attempt may have made the purchase
    for ($attempt = 0; $attempt < 10; $attempt++) {
        [$status, $answer, $text] = call("POST", "/orders", $body, $key);
        if ($status === 201 && ($answer["success"] ?? false)) {
            echo $text, "\n";
            return 0;
        }
        // Only the service's own JSON settles a purchase. After every other
        // response the outcome is unknown.
        $isRefusal = $status >= 400 && $status < 500;
        $error = $isRefusal ? ($answer["error"] ?? null) : null;
        $code = $error["code"] ?? "unclear";
        // A 429 of a proxy does not say how long to wait.
        $wait = $status === 429 ? 10 * $pause : $pause;
        if ($code === "rate_limited") {
            $wait = $error["retry_after_seconds"] ?? $wait;
        } elseif (in_array($code, ["unclear", "request_in_progress", "request_abandoned"])) {
            $unknown = true;
            if ($code === "request_abandoned") {
                // Bought already: read the order, do not buy again.
                [$status, $answer, $text] = call("GET", "/orders/" . $error["reference"]);
                if ($status === 200 && ($answer["success"] ?? false)) {
                    echo $text, "\n";
                    return 0;
                }
            }
        } else {
            echo $text, "\n";
            if (!$unknown || $code === "order_refused") {
                return 1;
            }
            // Only order_refused says that the earlier attempts bought nothing.
            break;
        }
        fwrite(STDERR, "HTTP status " . ($status ?: "unknown") . ": trying again\n");
        usleep((int) ($wait * 1_000_000));
    }
    fwrite(STDERR, "The outcome is unknown. Start again with the same idempotency key.\n");
    return 2;
}

exit(buy($argv[1], $argv[2]));

// Buys once, however often it must retry. It needs only Java 17+.
//
//   java Buy.java '{"product_id": 10, "quantity": 1}' IDEMPOTENCY_KEY
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
// Java has no JSON parser of its own. Read the printed response with the one
// of your program, and its amounts as BigDecimal.

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

public class Buy {
    static final Pattern SUCCESS =
            Pattern.compile("^\\{\"success\": ?true, ?\"data\": ?\\{.*\\}\\s*$", Pattern.DOTALL);
    static final Pattern FAILURE = Pattern.compile(
            "^\\{\"success\": ?false, ?\"error\": ?\\{\"code\": ?\"([a-z_]+)\".*\\}\\s*$",
            Pattern.DOTALL);
    static final HttpClient CLIENT =
            HttpClient.newBuilder().connectTimeout(Duration.ofSeconds(10)).build();

    /** Status 0 means that no complete response came. */
    record Answer(int status, String text) {
        boolean succeeded(int expected) {
            return status == expected && SUCCESS.matcher(text).matches();
        }

        /** The error code of the service, or "unclear" if the response is from elsewhere. */
        String code() {
            Matcher failure = FAILURE.matcher(text);
            return status >= 400 && status < 500 && failure.matches()
                    ? failure.group(1)
                    : "unclear";
        }

        String field(String name) {
            Matcher found = Pattern.compile("\"" + name + "\": ?\"?(\\w+)").matcher(text);
            return found.find() ? found.group(1) : "";
        }
    }

    static Answer call(String method, String path, String body, String key)
            throws InterruptedException {
        HttpRequest.Builder request =
                HttpRequest.newBuilder(URI.create(System.getenv("VOUCHER_BASE_URL") + path))
                        .header("Authorization", "Bearer " + System.getenv("VOUCHER_API_KEY"))
                        .header("Accept", "application/json");
        if (body == null) {
            request.GET();
        } else {
            request.header("Content-Type", "application/json")
                    .header("Idempotency-Key", key)
                    .method(method, HttpRequest.BodyPublishers.ofString(body));
        }
        CompletableFuture<HttpResponse<String>> sent =
                CLIENT.sendAsync(request.build(), HttpResponse.BodyHandlers.ofString());
        try { // the timeout of a request would not end a body that stalls
            HttpResponse<String> response = sent.get(35, TimeUnit.SECONDS);
            return new Answer(response.statusCode(), response.body());
        } catch (ExecutionException | TimeoutException lost) {
            sent.cancel(true);
            return new Answer(0, "");
        }
    }

    /** Prints the response and returns the exit code. */
    static int buy(String body, String key) throws InterruptedException {
        String text = System.getenv("VOUCHER_SECOND"); // tests set a shorter one
        double second = text == null ? 1 : Double.parseDouble(text);
        boolean unknown = false; // whether an attempt may have made the purchase
        double unknownAt = 0; // when the last such attempt ended
        double ends = now() + 360 * second; // request_in_progress can last five minutes
        double late = 90 * second; // as long, an attempt without a response may still arrive
        for (double whole = second; ; whole = Math.min(2 * whole, 30 * second)) {
            double sent = now();
            Answer answer = call("POST", "/orders", body, key);
            if (answer.succeeded(201)) {
                return bought(answer);
            }
            // Only the service's own JSON settles a purchase. After every
            // other response the outcome is unknown.
            String code = answer.code();
            // A 429 of a proxy does not say how long to wait.
            double wait = answer.status() == 429
                    ? 30 * second
                    : whole * (0.5 + Math.random() / 2);
            switch (code) {
                case "rate_limited" -> {
                    String seconds = answer.field("retry_after_seconds");
                    wait = seconds.isEmpty() ? wait : Double.parseDouble(seconds);
                }
                case "unclear", "request_in_progress" -> {
                    unknown = true;
                    unknownAt = now();
                }
                case "request_abandoned" -> {
                    unknown = true;
                    unknownAt = now();
                    // Bought already: read the order, do not buy again.
                    Answer order = call("GET", "/orders/" + answer.field("reference"), null, null);
                    if (order.succeeded(200)) {
                        return bought(order);
                    }
                }
                default -> {
                    boolean refused = !unknown || code.equals("order_refused");
                    if (unknown && refused && sent < unknownAt + late) {
                        // A refusal does not bind the key: an earlier attempt could still buy.
                        wait = Math.max(0, unknownAt + late + second - now());
                    } else if (refused) {
                        System.out.println(answer.text());
                        return 1;
                    } else { // the error says nothing about earlier attempts
                        System.err.println(answer.text());
                        return unknownOutcome();
                    }
                }
            }
            if (now() + wait > ends) {
                return unknownOutcome();
            }
            System.err.println("HTTP status " + answer.status() + ": trying again");
            Thread.sleep((long) (wait * 1000));
        }
    }

    static double now() {
        return System.nanoTime() / 1e9;
    }

    /** Prints the order. The outcome counts as unknown if that fails. */
    static int bought(Answer order) {
        System.out.println(order.text());
        return System.out.checkError() ? unknownOutcome() : 0;
    }

    static int unknownOutcome() {
        System.err.println("The outcome is unknown. Start again with the same idempotency key.");
        return 2;
    }

    /** Returns what is wrong with the start of the program; null if nothing is. */
    static String problem(String[] arguments) {
        if (System.getenv().getOrDefault("VOUCHER_BASE_URL", "").isEmpty()) {
            return "Set VOUCHER_BASE_URL";
        }
        if (!System.getenv().getOrDefault("VOUCHER_API_KEY", "").matches("[!-~]+")) {
            // Never print it.
            return "Set VOUCHER_API_KEY to the key only, without spaces or line ends";
        }
        if (arguments.length != 2
                || !arguments[0].strip().matches("(?s)\\{.*\\}")
                || !arguments[1].matches("[ -~]+")) {
            return "Usage: Buy.java BODY IDEMPOTENCY_KEY: a JSON object and printable ASCII";
        }
        return null;
    }

    public static void main(String[] arguments) {
        String wrong = problem(arguments);
        if (wrong != null) {
            System.err.println(wrong);
            System.exit(64);
        }
        try {
            System.exit(buy(arguments[0], arguments[1]));
        } catch (Throwable crash) { // uncaught, it would end with 1: refused
            System.err.println(crash);
            System.exit(unknownOutcome());
        }
    }
}

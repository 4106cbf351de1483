// Waits until top-ups are delivered, or have failed and are refunded. It
// needs only Java 17+.
//
//   java Wait.java REFERENCE...
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
//
// Java has no JSON parser of its own. Your program can read the orders with
// the one that it has.

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

public class Wait {
    static final Pattern SUCCESS =
            Pattern.compile("^\\{\"success\": ?true, ?\"data\": ?\\{.*\\}\\s*$", Pattern.DOTALL);
    static final Pattern FAILURE = Pattern.compile(
            "^\\{\"success\": ?false, ?\"error\": ?\\{\"code\": ?\"([a-z_]+)\".*\\}\\s*$",
            Pattern.DOTALL);
    static final Pattern ORDER =
            Pattern.compile("^\"([^\"]+)\".*\"status\": ?\"(\\w+)\".*$", Pattern.DOTALL);
    static final Pattern REFUNDED = Pattern.compile("\"refunded\": ?true");
    static final Pattern RETRY_AFTER = Pattern.compile("\"retry_after_seconds\": ?(\\d+)");
    static final HttpClient CLIENT =
            HttpClient.newBuilder().connectTimeout(Duration.ofSeconds(10)).build();

    static final double PAUSE = seconds("VOUCHER_PAUSE_SECONDS", "30");
    // How long it waits for a refund, which normally takes seconds, and how long
    // it goes on while no order can be read.
    static final double PATIENCE = seconds("VOUCHER_PATIENCE_SECONDS", "900");

    record Order(String status, boolean refunded) {}

    static double unreadableSince = 0; // when a request failed, if no order was read since

    /** Waiting does not help. */
    static class Hopeless extends RuntimeException {
        Hopeless(String message) {
            super(message);
        }
    }

    /**
     * Returns orders by reference, or null if they cannot be read now. Waits
     * and repeats the request after 429. Throws Hopeless if the service says
     * that waiting does not help, such as for an unknown reference. An answer
     * of a proxy does not say that.
     */
    static Map<String, Order> read(String path) throws InterruptedException {
        HttpRequest request =
                HttpRequest.newBuilder(URI.create(System.getenv("VOUCHER_BASE_URL") + path))
                        .header("Authorization", "Bearer " + System.getenv("VOUCHER_API_KEY"))
                        .header("Accept", "application/json")
                        .build();
        while (true) {
            int status = 0;
            String text = "";
            CompletableFuture<HttpResponse<String>> sent =
                    CLIENT.sendAsync(request, HttpResponse.BodyHandlers.ofString());
            try { // the timeout of a request would not end a body that stalls
                HttpResponse<String> response = sent.get(35, TimeUnit.SECONDS);
                status = response.statusCode();
                text = response.body();
            } catch (ExecutionException | TimeoutException lost) {
                sent.cancel(true); // no response, or an incomplete one
            }
            if (status == 200 && SUCCESS.matcher(text).matches()) {
                Map<String, Order> orders = new HashMap<>();
                for (String part : text.split("\\{\"reference\": ?")) { // each order begins a part
                    Matcher order = ORDER.matcher(part);
                    if (order.matches()) {
                        boolean refunded = REFUNDED.matcher(part).find();
                        orders.put(order.group(1), new Order(order.group(2), refunded));
                    }
                }
                return orders;
            }
            Matcher failure = FAILURE.matcher(text);
            if (status >= 400 && status < 500 && status != 429 && failure.matches()) {
                throw new Hopeless(path + " cannot be read: " + failure.group(1));
            }
            unreadableSince = unreadableSince == 0 ? now() : unreadableSince;
            if (now() - unreadableSince >= PATIENCE) {
                throw new Hopeless(
                        "Gave up, because no order could be read: check VOUCHER_BASE_URL");
            }
            System.err.println("HTTP status " + status + ": trying again");
            if (status != 429) {
                return null;
            }
            // A 429 of a proxy does not say how long to wait.
            Matcher after = RETRY_AFTER.matcher(text);
            sleep(after.find() ? Math.max(PAUSE, Double.parseDouble(after.group(1))) : PAUSE);
        }
    }

    /** Prints how each top-up ended, and returns the exit code. */
    static int wait(Set<String> waiting) throws InterruptedException {
        Map<String, Double> failedAt = new HashMap<>();
        int exitCode = 0;
        while (true) {
            Map<String, Order> newest =
                    waiting.size() > 1 ? read("/orders?per_page=100") : Map.of();
            double gap = 0;
            for (String reference : newest == null ? List.<String>of() : List.copyOf(waiting)) {
                Order order = newest.get(reference);
                if (order == null) {
                    sleep(gap);
                    gap = 1;
                    Map<String, Order> found = read("/orders/" + reference);
                    order = found == null ? null : found.get(reference);
                }
                if (order == null) {
                    continue;
                }
                unreadableSince = 0;
                String end = end(reference, order, failedAt);
                if (end != null) {
                    System.out.println(reference + " " + end);
                    waiting.remove(reference);
                    exitCode = end.equals("not refunded") ? 1 : exitCode;
                }
            }
            if (waiting.isEmpty()) {
                return exitCode;
            }
            sleep(PAUSE);
        }
    }

    /** Returns how the top-up ended, or null if it has not ended. */
    static String end(String reference, Order order, Map<String, Double> failedAt) {
        if (order.status().equals("completed")) {
            return "completed";
        }
        if (!order.status().equals("failed")) {
            return null;
        }
        failedAt.putIfAbsent(reference, now());
        // `refunded` is true once the money is back in the wallet.
        if (order.refunded()) {
            return "refunded";
        }
        return now() - failedAt.get(reference) >= PATIENCE ? "not refunded" : null;
    }

    static void sleep(double seconds) throws InterruptedException {
        Thread.sleep((long) (seconds * 1000));
    }

    static double now() {
        return System.nanoTime() / 1e9;
    }

    /** Returns the number in a variable, or 0 if it is not a positive number. */
    static double seconds(String name, String usual) {
        String text = System.getenv().getOrDefault(name, "");
        text = text.isEmpty() ? usual : text;
        return text.matches("[0-9]{1,6}(\\.[0-9]+)?") ? Double.parseDouble(text) : 0;
    }

    /** Returns what is wrong with the start of the program; null if nothing is. */
    static String problem(List<String> references) {
        if (System.getenv().getOrDefault("VOUCHER_BASE_URL", "").isEmpty()) {
            return "Set VOUCHER_BASE_URL";
        }
        if (!System.getenv().getOrDefault("VOUCHER_API_KEY", "").matches("[!-~]+")) {
            // Never print it.
            return "Set VOUCHER_API_KEY to the key only, without spaces or line ends";
        }
        if (references.isEmpty()
                || !references.stream().allMatch(each -> each.matches("[0-9A-Za-z_-]+"))) {
            return "Usage: Wait.java REFERENCE...";
        }
        if (PAUSE == 0) {
            return "Set VOUCHER_PAUSE_SECONDS to a number of seconds";
        }
        if (PATIENCE == 0) {
            return "Set VOUCHER_PATIENCE_SECONDS to a number of seconds";
        }
        return null;
    }

    public static void main(String[] arguments) throws InterruptedException {
        List<String> references = List.of(arguments);
        String wrong = problem(references);
        if (wrong != null) {
            System.err.println(wrong);
            System.exit(64);
        }
        try {
            System.exit(wait(new LinkedHashSet<>(references)));
        } catch (Hopeless problem) {
            System.err.println(problem.getMessage());
            System.exit(1);
        }
    }
}

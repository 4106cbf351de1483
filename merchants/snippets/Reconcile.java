// Compares your purchases with the statement. It needs only Java 17+.
//
//   java Reconcile.java purchases 2026-10-01 2026-10-31
//
// The file order-1042.json in the folder purchases is what the program that
// buys printed for the idempotency key order-1042. It is empty while the
// outcome is unknown. The days are in UTC.
// Exit codes:
//   0  no difference
//   1  each difference is printed
//   2  there is no comparison; the reason is printed
//
// Java has no JSON parser of its own. This program needs a few fields only, and
// the statement has one line for each debit.

import java.io.IOException;
import java.math.BigDecimal;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

public class Reconcile {
    record Debit(String reference, BigDecimal amount, String key, String client) {}

    static final Pattern REFUSAL = Pattern.compile(
            "^\\{(\"success\": ?false, ?\"error\": ?\\{)?\"code\": ?\"[a-z_]+\".*\\}$",
            Pattern.DOTALL);

    /** The value of a field of JSON; empty if it is missing or null. */
    static String field(String json, String name) {
        String value = "(?:null|\"([^\"]*)\"|([^,}]*))";
        Matcher found = Pattern.compile("\"" + name + "\": ?" + value).matcher(json);
        if (!found.find()) {
            return "";
        }
        String text = found.group(1) == null ? found.group(2) : found.group(1);
        return text == null ? "" : text;
    }

    /** What was printed, by idempotency key. An empty text means that the outcome is unknown. */
    static SortedMap<String, String> readPurchases(String folder) throws IOException {
        SortedMap<String, String> purchases = new TreeMap<>();
        try (Stream<Path> files = Files.list(Path.of(folder))) {
            for (Path file : (Iterable<Path>) files::iterator) {
                String name = file.getFileName().toString();
                if (name.endsWith(".json")) {
                    String key = name.substring(0, name.length() - ".json".length());
                    String text = Files.readString(file).trim();
                    boolean isOrder = !field(text, "total_price").isEmpty() && text.endsWith("}");
                    if (!text.isEmpty() && !isOrder && !REFUSAL.matcher(text).matches()) {
                        throw new IOException(name + " contains no response of the service");
                    }
                    purchases.put(key, text);
                }
            }
        }
        return purchases;
    }

    /** The debits of the account's statement, oldest first. */
    static List<Debit> readDebits(String first, String last) throws Exception {
        String address = System.getenv("VOUCHER_SITE") + "/merchant/wallet/statement.json?since="
                + first + "&until=" + last + "&kind=purchase";
        HttpRequest request = HttpRequest.newBuilder(URI.create(address))
                .header("Authorization", "Bearer " + System.getenv("VOUCHER_BOOK_KEY"))
                .build();
        // The timeout of a request would not end a body that stalls.
        HttpResponse<String> response = HttpClient.newHttpClient()
                .sendAsync(request, HttpResponse.BodyHandlers.ofString())
                .get(60, TimeUnit.SECONDS);
        if (response.statusCode() != 200) {
            throw new IOException("HTTP status " + response.statusCode() + ": " + response.body());
        }
        if (!response.body().endsWith("\n]}\n")) {
            throw new IOException("The statement is incomplete");
        }
        List<Debit> debits = new ArrayList<>();
        for (String line : response.body().split("\n")) {
            String reference = field(line, "order_reference");
            if (!reference.isEmpty()) {
                BigDecimal amount = new BigDecimal(field(line, "amount")).negate();
                String key = field(line, "idempotency_key");
                debits.add(new Debit(reference, amount, key, field(line, "client")));
            }
        }
        return debits;
    }

    /** One line for each difference. */
    static List<String> compare(
            SortedMap<String, String> purchases, List<Debit> debits, String first, String last) {
        List<String> differences = new ArrayList<>();
        Map<String, BigDecimal> amounts = new HashMap<>();
        for (Debit debit : debits) {
            amounts.put(debit.reference(), debit.amount());
        }
        Set<String> known = new HashSet<>();
        Set<String> refused = new HashSet<>();
        purchases.forEach((key, json) -> {
            String reference = field(json, "reference");
            String total = field(json, "total_price");
            if (json.isEmpty()) {
                differences.add("open: " + key);
                return;
            }
            if (total.isEmpty()) {
                refused.add(key);
                return;
            }
            BigDecimal amount = amounts.get(reference);
            String day = field(json, "created_at").split("T")[0];
            if (!known.add(reference)) {
                differences.add("one order twice: " + reference + ", " + key);
            } else if (amount == null) {
                boolean isInside = day.compareTo(first) >= 0 && day.compareTo(last) <= 0;
                // A replacement costs 0 and has no debit.
                boolean isFree = new BigDecimal(total).signum() == 0;
                if (!isFree && (day.isEmpty() || isInside)) {
                    differences.add("no debit: " + reference + ", " + key);
                }
            } else if (amount.compareTo(new BigDecimal(total)) != 0) {
                differences.add("another amount: " + reference + ", " + key + ", " + total
                        + " here, " + amount + " debited");
            }
        });
        Set<String> seen = new HashSet<>();
        for (Debit debit : debits) {
            String reference = debit.reference();
            if (!seen.add(reference)) {
                differences.add("debited twice: " + reference + ", " + debit.key());
            } else if (refused.contains(debit.key())) {
                differences.add("bought, not refused: " + reference + ", " + debit.key() + ", "
                        + debit.amount() + " debited");
            } else if (!known.contains(reference)) {
                differences.add("unknown here: " + reference + ", " + debit.key() + ", "
                        + debit.client() + ", " + debit.amount() + " debited");
            }
        }
        return differences;
    }

    /** Throws an exception if the program was started wrongly. */
    static void check(String[] arguments) {
        if (arguments.length != 3) {
            throw new IllegalArgumentException(
                    "Usage: Reconcile.java purchases 2026-10-01 2026-10-31");
        }
        for (String day : List.of(arguments[1], arguments[2])) {
            if (!day.matches("\\d{4}-\\d\\d-\\d\\d")) {
                throw new IllegalArgumentException("Not a day such as 2026-10-31: " + day);
            }
        }
        if (System.getenv().getOrDefault("VOUCHER_SITE", "").isEmpty()) {
            throw new IllegalArgumentException("Set VOUCHER_SITE");
        }
        if (!System.getenv().getOrDefault("VOUCHER_BOOK_KEY", "").matches("[!-~]+")) {
            throw new IllegalArgumentException( // never print it
                    "Set VOUCHER_BOOK_KEY to the key only, without spaces or line ends");
        }
    }

    public static void main(String[] arguments) {
        try {
            check(arguments);
            String folder = arguments[0];
            String first = arguments[1];
            String last = arguments[2];
            SortedMap<String, String> purchases = readPurchases(folder);
            List<Debit> debits = readDebits(first, last);
            List<String> differences = compare(purchases, debits, first, last);
            differences.forEach(System.out::println);
            System.out.println(purchases.size() + " purchases, " + debits.size() + " debits, "
                    + differences.size() + " differences");
            System.exit(differences.isEmpty() ? 0 : 1);
        } catch (Exception problem) { // after a crash, Java would end with 1
            System.err.println(problem);
            System.exit(2);
        }
    }
}

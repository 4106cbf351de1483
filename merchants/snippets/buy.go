// Buys once, however often it must retry. It needs only Go 1.19+.
//
//	go build buy.go
//	./buy '{"product_id": 10, "quantity": 1}' IDEMPOTENCY_KEY
//
// Do not use go run: it ends with 1 (refused) when the outcome is unknown.
// Make the idempotency key from your own order number, such as order-1042.
// Use a new key for each purchase, and store it before you start.
// Exit codes:
//
//	0  bought; the response is printed
//	1  refused, and this run charged nothing; the response is printed
//	2  the outcome is unknown; start again with the same idempotency key
//	64 started wrongly, and this run sent nothing; the reason is printed
//
// After 2 or a crash, wait 90 seconds, and start it again with the same key. Of the
// refusals, only order_refused is final then: after any other, start it again.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var client = http.Client{
	Timeout: 35 * time.Second,
	CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	},
}

// answer is the service's own JSON. Decode amounts of Data as json.Number or
// with a decimal library: a float64 rounds them.
type answer struct {
	Success *bool           `json:"success"`
	Data    json.RawMessage `json:"data"`
	Error   *failure        `json:"error"`
	text    []byte
}

type failure struct {
	Code       string   `json:"code"`
	Reference  string   `json:"reference"`
	RetryAfter *float64 `json:"retry_after_seconds"`
}

func (a *answer) succeeded() bool { return a != nil && *a.Success }

// call returns the status and the service's own JSON. The status is 0 if no
// complete response came. The answer is nil if it is from elsewhere, such as a
// proxy.
func call(method, path, body, key string) (int, *answer) {
	request, err := http.NewRequest(
		method, os.Getenv("VOUCHER_BASE_URL")+path, strings.NewReader(body))
	if err != nil {
		return 0, nil
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("VOUCHER_API_KEY"))
	request.Header.Set("Accept", "application/json")
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Idempotency-Key", key)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, nil
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, nil
	}
	read := answer{text: text}
	if json.Unmarshal(text, &read) != nil || read.Success == nil {
		return response.StatusCode, nil
	}
	if *read.Success && !strings.HasPrefix(string(read.Data), "{") {
		return response.StatusCode, nil
	}
	if !*read.Success && (read.Error == nil || read.Error.Code == "") {
		return response.StatusCode, nil
	}
	return response.StatusCode, &read
}

// buy prints the response and returns the exit code.
func buy(body, key string) int {
	second := float64(time.Second)
	if text := os.Getenv("VOUCHER_SECOND"); text != "" { // tests set a shorter one
		shorter, _ := strconv.ParseFloat(text, 64)
		second *= shorter
	}
	var unknownAt time.Time // when the last attempt with an unknown outcome ended
	// request_in_progress can last five minutes.
	ends := time.Now().Add(time.Duration(360 * second))
	// As long, an attempt without a response may still arrive.
	late := time.Duration(90 * second)
	for whole := second; ; whole = math.Min(2*whole, 30*second) {
		sent := time.Now()
		status, read := call("POST", "/orders", body, key)
		if status == 201 && read.succeeded() {
			return bought(read.text)
		}
		// Only the service's own JSON settles a purchase. After every other
		// response the outcome is unknown.
		refused := failure{Code: "unclear"}
		if status >= 400 && status < 500 && read != nil && read.Error != nil {
			refused = *read.Error
		}
		wait := time.Duration(whole * (0.5 + rand.Float64()/2))
		if status == 429 { // a 429 of a proxy does not say how long to wait
			wait = time.Duration(30 * second)
		}
		switch refused.Code {
		case "rate_limited":
			if refused.RetryAfter != nil {
				wait = time.Duration(*refused.RetryAfter * float64(time.Second))
			}
		case "unclear", "request_in_progress":
			unknownAt = time.Now()
		case "request_abandoned":
			unknownAt = time.Now()
			// Bought already: read the order, do not buy again.
			status, read = call("GET", "/orders/"+refused.Reference, "", "")
			if status == 200 && read.succeeded() {
				return bought(read.text)
			}
		default:
			unknown, isRefused := !unknownAt.IsZero(), refused.Code == "order_refused"
			if unknown && isRefused && sent.Before(unknownAt.Add(late)) {
				// A refusal does not bind the key: an earlier attempt could still buy.
				wait = time.Until(unknownAt.Add(late)) + time.Duration(second)
				break
			}
			if !unknown || isRefused {
				fmt.Println(string(read.text))
				return 1
			}
			// The error says nothing about earlier attempts.
			fmt.Fprintln(os.Stderr, string(read.text))
			return unknownOutcome()
		}
		if time.Now().Add(wait).After(ends) {
			return unknownOutcome()
		}
		fmt.Fprintf(os.Stderr, "HTTP status %d: trying again\n", status)
		time.Sleep(wait)
	}
}

// bought prints the order. The outcome counts as unknown if that fails.
func bought(order []byte) int {
	if _, err := fmt.Println(string(order)); err != nil {
		return unknownOutcome()
	}
	return 0
}

func unknownOutcome() int {
	fmt.Fprintln(os.Stderr,
		"The outcome is unknown. Start again with the same idempotency key.")
	return 2
}

// problem returns what is wrong with how the program was started.
func problem(arguments []string) string {
	isKey := regexp.MustCompile(`^[!-~]+$`).MatchString
	isASCII := regexp.MustCompile(`^[ -~]+$`).MatchString
	var body map[string]any
	switch {
	case os.Getenv("VOUCHER_BASE_URL") == "":
		return "Set VOUCHER_BASE_URL"
	case !isKey(os.Getenv("VOUCHER_API_KEY")): // never print it
		return "Set VOUCHER_API_KEY to the key only, without spaces or line ends"
	case len(arguments) != 2 || !isASCII(arguments[1]) ||
		json.Unmarshal([]byte(arguments[0]), &body) != nil || body == nil:
		return "Usage: buy BODY IDEMPOTENCY_KEY: a JSON object and printable ASCII"
	}
	return ""
}

func main() {
	if wrong := problem(os.Args[1:]); wrong != "" {
		fmt.Fprintln(os.Stderr, wrong)
		os.Exit(64)
	}
	os.Exit(buy(os.Args[1], os.Args[2]))
}

// Buys once, however often it must retry. It needs only Go 1.19+.
//
//	go run buy.go '{"product_id": 10, "quantity": 1}' IDEMPOTENCY_KEY
//
// Create a new idempotency key for each purchase and store it before you
// start.
// Exit codes:
//
//	0  bought; the response is printed
//	1  refused, and this run charged nothing; the response is printed
//	2  the outcome is unknown; start again with the same idempotency key
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

const attempts = 10

var client = http.Client{
	Timeout: 30 * time.Second,
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
	pause := 3.0
	if text := os.Getenv("VOUCHER_PAUSE_SECONDS"); text != "" {
		pause, _ = strconv.ParseFloat(text, 64)
	}
	unknown := false // whether an attempt may have made the purchase
	for attempt := 0; attempt < attempts; attempt++ {
		status, read := call("POST", "/orders", body, key)
		if status == 201 && read.succeeded() {
			fmt.Println(string(read.text))
			return 0
		}
		// Only the service's own JSON settles a purchase. After every other
		// response the outcome is unknown.
		refused := failure{Code: "unclear"}
		if status >= 400 && status < 500 && read != nil && read.Error != nil {
			refused = *read.Error
		}
		wait := pause
		if status == 429 { // a 429 of a proxy does not say how long to wait
			wait = 10 * pause
		}
		switch refused.Code {
		case "rate_limited":
			if refused.RetryAfter != nil {
				wait = *refused.RetryAfter
			}
		case "unclear", "request_in_progress":
			unknown = true
		case "request_abandoned":
			unknown = true
			// Bought already: read the order, do not buy again.
			status, read = call("GET", "/orders/"+refused.Reference, "", "")
			if status == 200 && read.succeeded() {
				fmt.Println(string(read.text))
				return 0
			}
		default:
			fmt.Println(string(read.text))
			// Only order_refused says that the earlier attempts bought nothing.
			if !unknown || refused.Code == "order_refused" {
				return 1
			}
			return unknownOutcome()
		}
		fmt.Fprintf(os.Stderr, "HTTP status %d: trying again\n", status)
		time.Sleep(time.Duration(wait * float64(time.Second)))
	}
	return unknownOutcome()
}

func unknownOutcome() int {
	fmt.Fprintln(os.Stderr,
		"The outcome is unknown. Start again with the same idempotency key.")
	return 2
}

func main() {
	os.Exit(buy(os.Args[1], os.Args[2]))
}

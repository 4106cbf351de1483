// Waits until top-ups are delivered, or have failed and are refunded. It
// needs only Go 1.19+.
//
//	go build wait.go
//	./wait REFERENCE...
//
// The service sends no callbacks, so this program polls. One request reads
// the 100 newest orders; older ones are read one by one, one a second. Keep
// the pause within your rate limit.
// A line says how each top-up ended: REFERENCE completed, REFERENCE refunded
// or REFERENCE not refunded. For the last one, contact support before you buy
// it again.
// Exit codes:
//
//	0  each top-up was delivered, or it failed and was refunded
//	1  one was not refunded, or cannot be read; a line says why
//	64 started wrongly, and this run sent nothing; the reason is printed
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"time"
)

var client = http.Client{
	Timeout: 35 * time.Second,
	CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	},
}

var pause = seconds("VOUCHER_PAUSE_SECONDS", "30")

// How long it waits for a refund, which normally takes seconds, and how long
// it goes on while no order can be read.
var patience = seconds("VOUCHER_PATIENCE_SECONDS", "900")

var unreadableSince time.Time // when a request failed, if no order was read since

type order struct {
	Reference string `json:"reference"`
	Status    string `json:"status"`
	Refunded  bool   `json:"refunded"`
}

// read fills data with the service's data. It returns false if that cannot be
// read now, waits and repeats the request after 429, and ends the program if
// the service says that waiting does not help, such as for an unknown
// reference. An answer of a proxy does not say that.
func read(path string, data any) bool {
	for {
		status, text := get(path)
		// The service's own JSON is {success: true, data} or
		// {success: false, error: {code}}.
		var answer struct {
			Success *bool           `json:"success"`
			Data    json.RawMessage `json:"data"`
			Error   struct {
				Code       string  `json:"code"`
				RetryAfter float64 `json:"retry_after_seconds"`
			} `json:"error"`
		}
		if json.Unmarshal(text, &answer) == nil && answer.Success != nil {
			if status == 200 && *answer.Success && json.Unmarshal(answer.Data, data) == nil {
				return true
			}
			isFinal := status >= 400 && status < 500 && status != 429
			if isFinal && !*answer.Success && answer.Error.Code != "" {
				fmt.Fprintf(os.Stderr, "%s cannot be read: %s\n", path, answer.Error.Code)
				os.Exit(1)
			}
		}
		if unreadableSince.IsZero() {
			unreadableSince = time.Now()
		}
		if time.Since(unreadableSince) >= patience {
			fmt.Fprintln(os.Stderr, "Gave up, because no order could be read: check VOUCHER_BASE_URL")
			os.Exit(1)
		}
		fmt.Fprintf(os.Stderr, "HTTP status %d: trying again\n", status)
		if status != 429 {
			return false
		}
		// A 429 of a proxy does not say how long to wait.
		time.Sleep(longer(pause, time.Duration(answer.Error.RetryAfter*float64(time.Second))))
	}
}

func longer(a, b time.Duration) time.Duration {
	if a > b {
		return a
	}
	return b
}

// get returns the status and the body. The status is 0 if no complete
// response came.
func get(path string) (int, []byte) {
	request, err := http.NewRequest("GET", os.Getenv("VOUCHER_BASE_URL")+path, nil)
	if err != nil {
		return 0, nil
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("VOUCHER_API_KEY"))
	request.Header.Set("Accept", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return 0, nil
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, nil
	}
	return response.StatusCode, text
}

// current calls use with each order that can be read now.
func current(references []string, use func(order)) {
	newest := map[string]order{}
	if len(references) > 1 {
		var page struct {
			Items []order `json:"items"`
		}
		if !read("/orders?per_page=100", &page) {
			return
		}
		for _, each := range page.Items {
			newest[each.Reference] = each
		}
	}
	var gap time.Duration
	for _, reference := range references {
		found, isReadable := newest[reference]
		if !isReadable {
			time.Sleep(gap)
			gap = time.Second
			isReadable = read("/orders/"+reference, &found)
		}
		if isReadable {
			unreadableSince = time.Time{}
			use(found)
		}
	}
}

// wait prints how each top-up ended, and returns the exit code.
func wait(waiting []string) (exitCode int) {
	failedAt := map[string]time.Time{}
	ended := map[string]bool{}
	for {
		current(waiting, func(found order) {
			end := ""
			if found.Status == "completed" {
				end = "completed"
			} else if found.Status == "failed" {
				if failedAt[found.Reference].IsZero() {
					failedAt[found.Reference] = time.Now()
				}
				// Refunded is true once the money is back in the wallet.
				if found.Refunded {
					end = "refunded"
				} else if time.Since(failedAt[found.Reference]) >= patience {
					end = "not refunded"
					exitCode = 1
				}
			}
			if end != "" && !ended[found.Reference] {
				ended[found.Reference] = true
				fmt.Println(found.Reference, end)
			}
		})
		var left []string
		for _, reference := range waiting {
			if !ended[reference] {
				left = append(left, reference)
			}
		}
		if len(left) == 0 {
			return exitCode
		}
		waiting = left
		time.Sleep(pause)
	}
}

// seconds returns the number in a variable, or 0 if it is not a positive number.
func seconds(name, usual string) time.Duration {
	text := os.Getenv(name)
	if text == "" {
		text = usual
	}
	if !regexp.MustCompile(`^[0-9]{1,6}(\.[0-9]+)?$`).MatchString(text) {
		return 0
	}
	number, _ := strconv.ParseFloat(text, 64)
	return time.Duration(number * float64(time.Second))
}

// problem returns what is wrong with how the program was started.
func problem(references []string) string {
	if os.Getenv("VOUCHER_BASE_URL") == "" {
		return "Set VOUCHER_BASE_URL"
	}
	if !regexp.MustCompile(`^[!-~]+$`).MatchString(os.Getenv("VOUCHER_API_KEY")) { // never print it
		return "Set VOUCHER_API_KEY to the key only, without spaces or line ends"
	}
	isReference := regexp.MustCompile(`^[0-9A-Za-z_-]+$`).MatchString
	for _, reference := range references {
		if !isReference(reference) {
			references = nil
			break
		}
	}
	if len(references) == 0 {
		return "Usage: wait REFERENCE..."
	}
	if pause == 0 {
		return "Set VOUCHER_PAUSE_SECONDS to a number of seconds"
	}
	if patience == 0 {
		return "Set VOUCHER_PATIENCE_SECONDS to a number of seconds"
	}
	return ""
}

func main() {
	if wrong := problem(os.Args[1:]); wrong != "" {
		fmt.Fprintln(os.Stderr, wrong)
		os.Exit(64)
	}
	os.Exit(wait(os.Args[1:]))
}

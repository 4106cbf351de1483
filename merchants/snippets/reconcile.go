// Compares your purchases with the statement. It needs only Go 1.19+.
//
//	go build reconcile.go
//	./reconcile purchases 2026-10-01 2026-10-31
//
// Do not use go run: it ends with 1 when it should end with 2.
// The file order-1042.json in the folder purchases is what the program that
// buys printed for the idempotency key order-1042. It is empty while the
// outcome is unknown. The days are in UTC.
// Exit codes:
//
//	0  no difference
//	1  each difference is printed
//	2  there is no comparison; the reason is printed
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

var client = http.Client{
	Timeout: time.Minute,
	CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	},
}

// order has a code and no total if the purchase was refused. json.Number keeps
// amounts exact: a float64 rounds them.
type order struct {
	Code      string      `json:"code"`
	Reference string      `json:"reference"`
	Total     json.Number `json:"total_price"`
	CreatedAt string      `json:"created_at"`
}

type purchase struct {
	key   string
	order *order // nil means that the outcome is unknown
}

type debit struct {
	Reference string      `json:"order_reference"`
	Amount    json.Number `json:"amount"`
	Key       string      `json:"idempotency_key"`
	Client    string      `json:"client"`
}

func (d debit) paid() string { return strings.TrimPrefix(d.Amount.String(), "-") }

func readPurchases(folder string) ([]purchase, error) {
	files, err := os.ReadDir(folder) // sorted by name
	if err != nil {
		return nil, err
	}
	var purchases []purchase
	for _, file := range files {
		key := strings.TrimSuffix(file.Name(), ".json")
		if key == file.Name() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, file.Name()))
		if err != nil {
			return nil, err
		}
		if len(bytes.TrimSpace(text)) == 0 {
			purchases = append(purchases, purchase{key, nil})
			continue
		}
		// Some programs print the whole response.
		var answer struct {
			order
			Data  *order `json:"data"`
			Error *order `json:"error"`
		}
		err = json.Unmarshal(text, &answer)
		found := &answer.order
		if answer.Data != nil {
			found = answer.Data
		} else if answer.Error != nil {
			found = answer.Error
		}
		if err != nil || found.Total == "" && found.Code == "" {
			return nil, fmt.Errorf("%s contains no response of the service", file.Name())
		}
		purchases = append(purchases, purchase{key, found})
	}
	return purchases, nil
}

// readDebits returns the debits of the account's statement, oldest first.
func readDebits(first, last string) ([]debit, error) {
	address := fmt.Sprintf("%s/merchant/wallet/statement.json?since=%s&until=%s&kind=purchase",
		os.Getenv("VOUCHER_SITE"), first, last)
	request, err := http.NewRequest("GET", address, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("VOUCHER_BOOK_KEY"))
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != 200 {
		return nil, fmt.Errorf("HTTP status %d: %s", response.StatusCode, text)
	}
	var statement struct {
		Entries []debit `json:"entries"`
	}
	err = json.Unmarshal(text, &statement)
	return statement.Entries, err
}

func equal(one, other string) bool {
	first, _ := new(big.Rat).SetString(one)
	second, _ := new(big.Rat).SetString(other)
	return first != nil && second != nil && first.Cmp(second) == 0
}

// compare returns one line for each difference.
func compare(purchases []purchase, debits []debit, first, last string) []string {
	var differences []string
	report := func(format string, values ...any) {
		differences = append(differences, fmt.Sprintf(format, values...))
	}
	byReference := map[string]debit{}
	for _, each := range debits {
		byReference[each.Reference] = each
	}
	known, refused := map[string]bool{}, map[string]bool{}
	for _, each := range purchases {
		if each.order == nil {
			report("open: %s", each.key)
			continue
		}
		if each.order.Total == "" {
			refused[each.key] = true
			continue
		}
		reference, total := each.order.Reference, each.order.Total.String()
		if known[reference] {
			report("one order twice: %s, %s", reference, each.key)
		} else if found, isDebited := byReference[reference]; !isDebited {
			day, _, _ := strings.Cut(each.order.CreatedAt, "T")
			// A replacement costs 0 and has no debit.
			if !equal(total, "0") && (day == "" || first <= day && day <= last) {
				report("no debit: %s, %s", reference, each.key)
			}
		} else if !equal(found.paid(), total) {
			report("another amount: %s, %s, %s here, %s debited",
				reference, each.key, total, found.paid())
		}
		known[reference] = true
	}
	seen := map[string]bool{}
	for _, each := range debits {
		if seen[each.Reference] {
			report("debited twice: %s, %s", each.Reference, each.Key)
		} else if refused[each.Key] {
			report("bought, not refused: %s, %s, %s debited",
				each.Reference, each.Key, each.paid())
		} else if !known[each.Reference] {
			report("unknown here: %s, %s, %s, %s debited",
				each.Reference, each.Key, each.Client, each.paid())
		}
		seen[each.Reference] = true
	}
	return differences
}

var (
	aDay = regexp.MustCompile(`^\d{4}-\d\d-\d\d$`)
	aKey = regexp.MustCompile(`^[!-~]+$`)
)

// check returns an error if the program was started wrongly.
func check(arguments []string) error {
	if len(arguments) != 3 {
		return errors.New("Usage: reconcile purchases 2026-10-01 2026-10-31")
	}
	for _, day := range arguments[1:] {
		if !aDay.MatchString(day) {
			return fmt.Errorf("Not a day such as 2026-10-31: %s", day)
		}
	}
	if os.Getenv("VOUCHER_SITE") == "" {
		return errors.New("Set VOUCHER_SITE")
	}
	if !aKey.MatchString(os.Getenv("VOUCHER_BOOK_KEY")) { // never print it
		return errors.New("Set VOUCHER_BOOK_KEY to the key only, without spaces or line ends")
	}
	return nil
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

func main() {
	fail(check(os.Args[1:]))
	folder, first, last := os.Args[1], os.Args[2], os.Args[3]
	purchases, err := readPurchases(folder)
	fail(err)
	debits, err := readDebits(first, last)
	fail(err)
	differences := compare(purchases, debits, first, last)
	for _, line := range differences {
		fmt.Println(line)
	}
	fmt.Printf("%d purchases, %d debits, %d differences\n",
		len(purchases), len(debits), len(differences))
	if len(differences) > 0 {
		os.Exit(1)
	}
}

package shop

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/patchbay-dev/patchbay/internal/pattern"
)

const currency = "EUR"

// money is an amount in cents, at least 0. People and models see "24.90 EUR".
type money int64

var amount = pattern.Lazy(`^([0-9]{1,6})(?:\.([0-9]{2}))?(?: ` + currency + `)?$`)

func (m money) String() string { return fmt.Sprintf("%d.%02d %s", m/100, m%100, currency) }

// MarshalText makes its JSON a string.
func (m money) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads the form of MarshalText, also without currency or cents, up to
// 999999.99.
func (m *money) UnmarshalText(text []byte) error {
	parts := amount().FindSubmatch(text)
	if parts == nil {
		return errors.New("must be an amount such as 24.90, at most 999999.99")
	}
	cents := string(parts[2])
	if cents == "" {
		cents = "00"
	}
	n, err := strconv.ParseInt(string(parts[1])+cents, 10, 64)
	if err != nil {
		return err
	}
	*m = money(n)
	return nil
}

package shop

import "testing"

func TestMoney(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"24.90", "24.90 EUR"},
		{"24.90 EUR", "24.90 EUR"},
		{"24", "24.00 EUR"},
		{"0.05", "0.05 EUR"},
		{"999999.99", "999999.99 EUR"},
		{"007", "7.00 EUR"},
		{"", ""},
		{"24.9", ""},
		{"24.900", ""},
		{"24,90", ""},
		{"-1", ""},
		{"+1", ""},
		{" 1", ""},
		{"1\n", ""},
		{"1e3", ""},
		{"1 USD", ""},
		{"1000000", ""},
		{"١", ""},
	} {
		var m money
		got := ""
		if err := m.UnmarshalText([]byte(tt.text)); err == nil {
			got = m.String()
		} else if m != 0 {
			t.Errorf("%q set %v in spite of %v", tt.text, m, err)
		}
		if got != tt.want {
			t.Errorf("money of %q = %q, want %q", tt.text, got, tt.want)
		}
	}
}

// Accepted amounts are within bounds, and round-trip.
func FuzzMoney(f *testing.F) {
	for _, seed := range []string{"24.90", "0", "999999.99 EUR", "1.5", "x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var m, again money
		if m.UnmarshalText([]byte(text)) != nil {
			return
		}
		if m < 0 || m > 99_999_999 {
			t.Errorf("%q is %d cents", text, m)
		}
		if err := again.UnmarshalText([]byte(m.String())); err != nil || again != m {
			t.Errorf("%q is shown as %q, which reads as %d cents, %v; want %d", text, m, again, err, m)
		}
	})
}

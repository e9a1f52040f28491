package load

import "testing"

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{0: "0.00", 0.004: "0.00", 0.57: "0.57", 1.234: "1.23", 12.34: "12.3", 99.96: "100.0", 123.4: "123", 12345: "12345"} {
		if got := number(v, v); got != want {
			t.Errorf("number(%v) = %s, want %s", v, got, want)
		}
	}
}

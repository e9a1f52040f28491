package listen

import "testing"

// A server listens on loopback alone, unless it is shared (HTTP-26-004, SEC-26-015).
func TestAddress(t *testing.T) {
	tests := []struct {
		address string
		shared  bool
		want    string // empty: refused
	}{
		{"127.0.0.1:7420", false, "127.0.0.1:7420"},
		{"7420", false, "127.0.0.1:7420"},
		{"[::1]:0", false, "[::1]:0"},
		{":0", false, ""},
		{"0.0.0.0:0", false, ""},
		{"[::]:0", false, ""},
		{"192.0.2.1:80", false, ""},
		{"nonsense:port", false, ""},
		{"127.0.0.1", false, ""}, // no port
		{"localhost", true, ""},
		{":0", true, ":0"},
		{"0.0.0.0:0", true, "0.0.0.0:0"},
	}
	for _, tt := range tests {
		got, _, err := Address(tt.address, tt.shared)
		if err == nil && got != tt.want || (err != nil) != (tt.want == "") {
			t.Errorf("Address(%q, %v) = %q, %v, want %q", tt.address, tt.shared, got, err, tt.want)
		}
	}
}

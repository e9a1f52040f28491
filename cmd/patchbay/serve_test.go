package main

import "testing"

// A server is bound to loopback unless somebody insists (HTTP-26-004, SEC-26-015).
func TestListenAddress(t *testing.T) {
	tests := []struct {
		address  string
		insecure bool
		want     string // empty: refused
	}{
		{"127.0.0.1:7420", false, "127.0.0.1:7420"},
		{"7420", false, "127.0.0.1:7420"},
		{"[::1]:0", false, "[::1]:0"},
		{":0", false, ""},
		{"0.0.0.0:0", false, ""},
		{"[::]:0", false, ""},
		{"192.0.2.1:80", false, ""},
		{"nonsense:port", false, ""},
		{":0", true, ":0"},
		{"0.0.0.0:0", true, "0.0.0.0:0"},
	}
	for _, tt := range tests {
		got, err := listenAddress(tt.address, tt.insecure)
		if got != tt.want || (err != nil) != (tt.want == "") {
			t.Errorf("listenAddress(%q, %v) = %q, %v, want %q", tt.address, tt.insecure, got, err, tt.want)
		}
	}
}

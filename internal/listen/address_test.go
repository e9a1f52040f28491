package listen

import (
	"strings"
	"testing"
)

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

// The error of an address names the form that works.
func TestAddressHints(t *testing.T) {
	for address, want := range map[string]string{
		"myhost":                    "the port is missing; use myhost:7420",
		"myhost:":                   "the port is missing; use myhost:7420",
		"127.0.0.1":                 "the port is missing; use 127.0.0.1:7420",
		":":                         "the port is missing; use 127.0.0.1:7420",
		"[::1]":                     "the port is missing; use [::1]:7420",
		"::1":                       "the port is missing; use [::1]:7420",
		"[::1]:":                    "the port is missing; use [::1]:7420",
		"1:2:3":                     "too many colons",
		"99999":                     `"99999" is not a port, a number from 0 to 65535; use :7420`,
		"127.0.0.1:99999":           `"99999" is not a port, a number from 0 to 65535; use 127.0.0.1:7420`,
		"localhost:7420/mcp":        `"7420/mcp" is not a port, a number from 0 to 65535; use localhost:7420`,
		"http://127.0.0.1:7421/mcp": "a URL is not an address; use 127.0.0.1:7421",
		"http://myhost":             "a URL is not an address; use myhost:7420",
		"http://[::1]/mcp":          "a URL is not an address; use [::1]:7420",
		"http:///mcp":               "a URL is not an address; use 127.0.0.1:7420",
		"https://u@h:1?x":           "a URL is not an address; use h:1",
	} {
		if _, _, err := Address(address, true); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Address(%q) = %v, want %s", address, err, want)
		}
	}
}

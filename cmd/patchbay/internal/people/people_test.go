package people_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/people"
	"github.com/patchbay-dev/patchbay/config/deploy"
)

// Each wrong value is a fault of its member, and says what to write.
func TestCheck(t *testing.T) {
	good := deploy.Login{Issuer: "https://login.example.com", Client: "id", Token: time.Minute, Session: time.Hour}
	for want, change := range map[string]func(*deploy.Login){
		"":                   func(*deploy.Login) {},
		"login.issuer: the ": func(l *deploy.Login) { l.Issuer = "http://login.example.com" },
		"login.issuer names no tenant": func(l *deploy.Login) {
			l.Issuer = "https://login.microsoftonline.com/common/v2.0"
		},
		"everybody with a Google account": func(l *deploy.Login) { l.Issuer = "https://accounts.google.com" },
		"login.url: the URL":              func(l *deploy.Login) { l.URL = "http://mcp.example.com" },
		"login.scopes: ":                  func(l *deploy.Login) { l.Scopes = []string{"a b"} },
		"login.claims: the claim":         func(l *deploy.Login) { l.Claims = []string{"aud"} },
		"login.schemes: ":                 func(l *deploy.Login) { l.Schemes = []string{"data"} },
	} {
		l := good
		change(&l)
		faults := people.Check(&l)
		if want == "" && len(faults) == 0 {
			continue
		}
		if len(faults) != 1 || !strings.HasPrefix(faults[0].Text, want) || faults[0].Warning != strings.Contains(want, "Google") {
			t.Errorf("%q: %+v", want, faults)
		}
	}
	google := good
	google.Issuer, google.Require = "https://accounts.google.com", []deploy.Requirement{{Claim: "hd", Values: []string{"example.com"}}}
	if faults := people.Check(&google); faults != nil {
		t.Errorf("with a domain: %+v", faults)
	}
	entra := good
	entra.Issuer = "https://login.microsoftonline.com/0b1c/v2.0"
	if faults := people.Check(&entra); faults != nil {
		t.Errorf("a tenant: %+v", faults)
	}
	for want, at := range map[string][2]string{
		"https://a.example/mcp":   {"https://a.example/mcp", "http://127.0.0.1:1/mcp"},
		"https://url.example/mcp": {"", "http://127.0.0.1:1/mcp"},
	} {
		l := google
		l.URL = "https://url.example"
		if s := people.Login(&l)(at[0], at[1], "", nil, nil); s.Resource != want || s.URL != l.URL {
			t.Errorf("%q: %+v, want the resource %s", at, s, want)
		}
	}
	if s := people.Login(&google)("", "", "", nil, nil); s != nil || people.Login(nil) != nil {
		t.Errorf("without any URL: %+v", s)
	}
	if s := people.Server(&google, "http://127.0.0.1:7420/mcp", "", nil, nil); s.URL != "http://127.0.0.1:7420" || fmt.Sprint(s.Require) != "map[hd:[example.com]]" || s.Check() != nil {
		t.Errorf("%+v, %v", s, s.Check())
	}
}

// Administrators get tokens for the URL of the administration: login.adminURL, else its address, with the
// host of login.url if the address has none.
func TestAdmin(t *testing.T) {
	for _, tt := range []struct {
		admin, url, address, scheme, want string
	}{
		{"", "", "127.0.0.1:9443", "http://", "http://127.0.0.1:9443/a"},
		{"https://admin.example.com", "https://mcp.example.com", "127.0.0.1:9443", "http://", "https://admin.example.com/a"},
		{"", "https://mcp.example.com:8443", "0.0.0.0:9443", "https://", "https://mcp.example.com:9443/a"},
		{"", "https://mcp.example.com", "10.0.0.1:9443", "https://", "https://10.0.0.1:9443/a"},
		{"", "", "[::]:9443", "https://", ""},
	} {
		at, err := net.ResolveTCPAddr("tcp", tt.address)
		if err != nil {
			t.Fatal(err)
		}
		if got := people.Admin(&deploy.Login{Admin: tt.admin, URL: tt.url}, at, tt.scheme, "/a"); got != tt.want {
			t.Errorf("%+v: %q", tt, got)
		}
	}
	if got := people.Admin(nil, &net.TCPAddr{Port: 1}, "http://", "/a"); got != "" {
		t.Errorf("without login: %q", got)
	}
	if faults := people.Check(&deploy.Login{Issuer: "https://login.example.com", Client: "id", Admin: "admin.example.com"}); len(faults) != 1 || faults[0].Member != "login.adminURL" {
		t.Errorf("a wrong URL: %+v", faults)
	}
}

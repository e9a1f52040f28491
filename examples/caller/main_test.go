package main

import (
	"context"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
)

type pair struct{ A, B int }

func newCalculator() *mcp.Server {
	srv := &mcp.Server{Name: "calculator", Version: "1.0.0"}
	mcp.AddTool(srv, mcp.Tool{Name: "add", Description: "Add two numbers"}, func(_ context.Context, in pair) (int, error) { return in.A + in.B, nil })
	return srv
}

// The test binary is the server too.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "serve" {
		newCalculator().ServeStdio(context.Background())
		return
	}
	os.Exit(m.Run())
}

// The same call works over HTTP and over standard streams.
func TestCall(t *testing.T) {
	web := httptest.NewServer(newCalculator())
	defer web.Close()
	for _, server := range [][]string{{web.URL}, {os.Args[0], "serve"}} {
		s, err := open(t.Context(), server)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		var out strings.Builder
		if err := call(t.Context(), s, "add", `{"A":1,"B":2}`, &out); err != nil || out.String() != "add: Add two numbers\n3\n" {
			t.Errorf("%q: %q, %v", server, out.String(), err)
		}
		if err := call(t.Context(), s, "add", `{"A":"x","B":2}`, &out); err == nil || err.Error() != "add: A: must be an integer, got string" {
			t.Errorf("%q: a wrong argument: %v", server, err)
		}
	}
}

package breaker_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/patchbay-dev/patchbay/breaker"
	"github.com/patchbay-dev/patchbay/mcp"
)

func Example() {
	server := mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return nil, &mcp.HTTPError{Status: 503}
	})
	b := &breaker.Breaker{Name: `server "db"`, Rule: breaker.Rule{Failures: 2, Calls: 4}}
	defer b.Stop()
	h := b.Handler(server)
	for range 3 {
		_, err := h.Handle(context.Background(), &mcp.Request{Method: "tools/call"})
		var open *breaker.OpenError
		fmt.Println("sent:", !errors.As(err, &open))
	}
	// Output:
	// sent: true
	// sent: true
	// sent: false
}

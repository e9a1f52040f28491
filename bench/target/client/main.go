//go:build unix

// Client is the client that benchmarks measure: it calls an echo tool, with the SDK's
// default settings.
//
//	client stdio -c N -dur D -warm D -size B -- SERVER ARG...
//	client http -c N -dur D -warm D -size B -url URL
package main

import (
	"context"
	"net/http"
	"os"
	"os/exec"

	"github.com/patchbay-dev/patchbay/bench/target/clientkit"
	"github.com/patchbay-dev/patchbay/mcp"
)

func main() {
	o := clientkit.Parse()
	ctx := context.Background()
	// The default transport of net/http keeps two idle connections per host; a client
	// with many concurrent calls must raise that.
	wire := http.DefaultTransport.(*http.Transport).Clone()
	wire.MaxIdleConnsPerHost = 256
	c := &mcp.Client{Name: "bench", Version: "1", HTTPClient: &http.Client{Transport: wire}}
	var s *mcp.Session
	var err error
	switch o.Transport {
	case "stdio":
		s, err = c.Start(ctx, exec.Command(o.Server[0], o.Server[1:]...))
	case "http":
		s, err = c.Dial(ctx, o.URL)
	default:
		os.Exit(clientkit.Unsupported)
	}
	if err != nil {
		clientkit.Fail(err)
	}
	type in struct {
		Message string `json:"message"`
	}
	clientkit.Run(ctx, o, func(ctx context.Context, text string) (string, error) {
		r, err := s.CallTool(ctx, "echo", in{text})
		if err != nil {
			return "", err
		}
		return r.Text(), nil
	})
	s.Close()
}

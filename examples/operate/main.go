// Command operate serves what a deployment needs beside the tools: /healthz and /readyz for a load
// balancer, /metrics for Prometheus, and an end that lets calls finish.
package main

import (
	"context"
	"errors"
	"log"
	"net"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/endpoint"
	"github.com/patchbay-dev/patchbay/metrics"
)

// store stands for what the tools need, such as a database.
type store struct{ away atomic.Bool }

func (s *store) ping(context.Context) error {
	if s.away.Load() {
		return errors.New("the database is away")
	}
	return nil
}

func (s *store) count(ctx context.Context, _ struct{}) (int, error) { return 42, s.ping(ctx) }

// newEndpoint serves /mcp, /healthz and /readyz; all other paths are the counters.
func newEndpoint(s *store) *endpoint.HTTP {
	srv := &mcp.Server{Name: "counter", Version: "1.0.0"}
	mcp.AddTool(srv, mcp.Tool{Name: "count", Description: "Count the orders"}, s.count)
	counters := &metrics.Counters{Listed: func(_, tool string) bool { return srv.HasTool(tool) }}
	srv.Use(counters.Front(), counters.Server("counter"))
	return &endpoint.HTTP{
		Server: srv, Handler: counters,
		Ready: s.ping,           // else /readyz answers 503
		Delay: 2 * time.Second,  // the load balancer notices the end
		Grace: 20 * time.Second, // calls in progress finish
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	ln, err := net.Listen("tcp", "127.0.0.1:7420")
	if err == nil {
		err = newEndpoint(new(store)).Serve(ctx, ln)
	}
	if err != nil {
		log.Fatal(err)
	}
}

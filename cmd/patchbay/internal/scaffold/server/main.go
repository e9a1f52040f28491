// Command projectname is an MCP server with a tool and a resource. It serves its standard streams, as
// hosts start it, or with --http an address:
//
//	go run . --http 127.0.0.1:7420
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
)

// person holds the arguments of the tool greet. The tags make its schema, and check each call.
type person struct {
	Name   string `json:"name" doc:"name of the person to greet" min:"1" max:"100"`
	Formal bool   `json:"formal,omitempty" doc:"greet formally"`
}

func greet(ctx context.Context, in person) (string, error) {
	if in.Formal {
		return "Good day, " + in.Name + ".", nil
	}
	return "Hello, " + in.Name + "!", nil
}

func about(ctx context.Context) (string, error) {
	return "projectname greets people, formally or not.", nil
}

func newServer() *mcp.Server {
	srv := &mcp.Server{Name: "projectname", Version: "0.1.0"}
	mcp.AddTool(srv, mcp.Tool{
		Name:        "greet",
		Description: "Greet a person",
		Annotations: &mcp.ToolAnnotations{ReadOnly: new(true)},
	}, greet)
	mcp.AddResource(srv, mcp.Resource{URI: "projectname://about", Name: "about", Description: "The purpose of this server"}, about)
	return srv
}

// serveHTTP serves Streamable HTTP at /mcp until ctx ends. Calls in progress then have ten seconds to
// finish.
func serveHTTP(ctx context.Context, srv *mcp.Server, ln net.Listener) error {
	mux := http.NewServeMux()
	mux.Handle("/mcp", srv)
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() {
		<-ctx.Done()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		err := srv.Shutdown(ctx) // first: it ends the open event streams, which web.Shutdown waits for
		ended <- errors.Join(err, web.Shutdown(ctx))
	}()
	if err := web.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-ended
}

func run(ctx context.Context, address string) error {
	if address == "" {
		return newServer().ServeStdio(ctx)
	}
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	log.Printf("http://%s/mcp", ln.Addr())
	return serveHTTP(ctx, newServer(), ln)
}

func main() {
	address := flag.String("http", "", "serve Streamable HTTP on this `address`, such as 127.0.0.1:7420")
	flag.Parse()
	if flag.NArg() > 0 {
		log.Fatal(fmt.Errorf("unknown argument %q; see --help", flag.Arg(0)))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *address); err != nil {
		log.Fatal(err)
	}
}

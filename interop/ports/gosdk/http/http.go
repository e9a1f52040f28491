// Package http is the port of go-sdk's examples/http: a server that tells the time of cities over
// Streamable HTTP, logs its requests, and a client that calls it.
package http

import (
	"context"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/middleware"
)

type Place struct {
	City string `json:"city,omitempty" doc:"City to get time for" enum:"nyc,sf,boston" default:"nyc"`
}

var cities = map[string]struct{ name, zone string }{
	"nyc":    {"New York City", "America/New_York"},
	"sf":     {"San Francisco", "America/Los_Angeles"},
	"boston": {"Boston", "America/New_York"},
}

func cityTime(_ context.Context, in Place) (string, error) {
	city := cities[in.City]
	zone, err := time.LoadLocation(city.zone)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("The current time in %s is %s", city.name, time.Now().In(zone).Format(time.RFC3339)), nil
}

func serve(addr string) error {
	srv := &mcp.Server{Name: "time-server", Version: "1.0.0"}
	srv.Use(middleware.Log(slog.Default()))
	mcp.AddTool(srv, mcp.Tool{Name: "cityTime", Description: "Get the current time in NYC, San Francisco, or Boston"}, cityTime)
	return http.ListenAndServe(addr, srv)
}

func call(url string) error {
	ctx := context.Background()
	s, err := (&mcp.Client{Name: "time-client", Version: "1.0.0"}).Dial(ctx, url)
	if err != nil {
		return err
	}
	defer s.Close()
	for tool, err := range s.Tools(ctx) {
		if err != nil {
			return err
		}
		log.Printf("%s: %s", tool.Name, tool.Description)
	}
	for _, city := range []string{"nyc", "sf", "boston"} {
		text, err := mcp.CallAs[string](ctx, s, "cityTime", Place{city})
		log.Println(text, err)
	}
	return nil
}

func Main() {
	host := flag.String("host", "localhost", "host to connect to or listen on")
	port := flag.Int("port", 8000, "port to connect to or listen on")
	proto := flag.String("proto", "http", "http or https, for the client")
	flag.Parse()
	addr := fmt.Sprintf("%s:%d", *host, *port)
	err := fmt.Errorf("usage: http [FLAGS] client|server, not %q", flag.Args())
	switch flag.Arg(0) {
	case "server":
		err = serve(addr)
	case "client":
		err = call(*proto + "://" + addr)
	}
	if err != nil {
		log.Fatal(err)
	}
}

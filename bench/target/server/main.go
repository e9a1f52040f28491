//go:build unix

// Server is the echo server that benchmarks measure: an ordinary tool on the SDK with its
// default settings.
//
//	server stdio [-tools N]
//	server http -addr HOST:PORT -session stateful|stateless|modern -resp json|sse [-tools N]
//
// It ends with its input, or on SIGTERM. On SIGUSR2 it returns memory to the system.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"syscall"

	"github.com/patchbay-dev/patchbay/mcp"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 || args[0] != "stdio" && args[0] != "http" {
		return errors.New("usage: server stdio|http [flags]")
	}
	fs := flag.NewFlagSet("server", flag.ExitOnError)
	addr := fs.String("addr", "127.0.0.1:8080", "HTTP address")
	session := fs.String("session", "stateful", "stateful, stateless or modern")
	resp := fs.String("resp", "json", "json or sse")
	tools := fs.Int("tools", 1, "tools in all")
	profile := fs.String("cpuprofile", "", "write a CPU profile to this file")
	fs.Parse(args[1:])
	if *profile != "" {
		f, err := os.Create(*profile)
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	collect := make(chan os.Signal, 1)
	signal.Notify(collect, syscall.SIGUSR2)
	go func() { // it ends with the process
		for range collect {
			debug.FreeOSMemory()
		}
	}()
	s, err := newServer(*tools)
	if err != nil {
		return err
	}
	if args[0] == "stdio" {
		return s.ServeStdio(context.Background())
	}
	s.HTTP.Stateless = *session == "stateless"
	var h http.Handler = s
	if *resp == "sse" {
		h = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if *session != "modern" { // whose clients must take both
				r.Header.Set("Accept", "text/event-stream")
			}
			s.ServeHTTP(w, r)
		})
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", h)
	failed := make(chan error, 1)
	go func() { failed <- http.ListenAndServe(*addr, mux) }() // it ends with the process
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	select {
	case err := <-failed:
		return err
	case <-term:
		return nil
	}
}

func newServer(tools int) (*mcp.Server, error) {
	type in struct {
		Message string `json:"message" doc:"the text to echo"`
	}
	s := &mcp.Server{Name: "patchbay", Version: "1"}
	mcp.AddTool(s, mcp.Tool{Name: "echo", Description: "Echoes its message."},
		func(_ context.Context, in in) (string, error) { return in.Message, nil })
	form := fmt.Sprintf(`{"type":"object","properties":{"message":{"type":"string","description":%q}},"required":["message"]}`, strings.Repeat("x", 880))
	for i := 1; i < tools; i++ {
		t := mcp.Tool{Name: fmt.Sprintf("tool%04d", i), Description: "Echoes its message.", InputSchema: json.RawMessage(form)}
		err := s.HandleTool(t, func(context.Context, json.RawMessage) (*mcp.ToolResult, error) { return &mcp.ToolResult{}, nil })
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

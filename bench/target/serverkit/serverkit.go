//go:build unix

// Package serverkit is the common part of the servers under test: flags, listening and
// shutdown.
//
// A server has one tool "echo" with a required string "message", which it returns as one
// text block, and is run as
//
//	SERVER stdio [-tools N]
//	SERVER http -addr HOST:PORT -session stateful|stateless|modern -resp json|sse [-tools N]
//
// HTTP is served at /mcp. With -tools N it registers N tools in all, the others with a
// schema of about 1 KiB. It exits with status 64 if it does not support a mode. On SIGUSR2
// it collects its garbage and returns the memory to the system.
package serverkit

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
)

// Unsupported is the exit status for a mode that the program lacks.
const Unsupported = 64

// Options are the parsed command line.
type Options struct {
	Transport string // "stdio" or "http"
	Addr      string
	Session   string // "stateful", "stateless" or "modern"
	Resp      string // "json" or "sse"
	Tools     int    // in all
}

// Parse reads the command line. It also starts to heed SIGUSR2.
func Parse() Options {
	if len(os.Args) < 2 || os.Args[1] != "stdio" && os.Args[1] != "http" {
		fmt.Fprintln(os.Stderr, "usage: SERVER stdio|http [flags]")
		os.Exit(Unsupported)
	}
	o := Options{Transport: os.Args[1]}
	fs := flag.NewFlagSet("server", flag.ExitOnError)
	fs.StringVar(&o.Addr, "addr", "127.0.0.1:8080", "HTTP address")
	fs.StringVar(&o.Session, "session", "stateful", "stateful, stateless or modern")
	fs.StringVar(&o.Resp, "resp", "json", "json or sse")
	fs.IntVar(&o.Tools, "tools", 1, "tools in all")
	fs.Parse(os.Args[2:])
	collect := make(chan os.Signal, 1)
	signal.Notify(collect, syscall.SIGUSR2)
	go func() { // it ends with the process
		for range collect {
			debug.FreeOSMemory()
		}
	}()
	return o
}

// Form is the input schema of the tools other than echo.
func Form() string {
	return fmt.Sprintf(`{"type":"object","properties":{"message":{"type":"string","description":%q}},"required":["message"]}`,
		strings.Repeat("x", 880))
}

// ListenAndServe serves h at /mcp until SIGTERM.
func ListenAndServe(o Options, h http.Handler) {
	mux := http.NewServeMux()
	mux.Handle("/mcp", h)
	s := &http.Server{Addr: o.Addr, Handler: mux}
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	go func() { // it ends with the process
		<-term
		s.Close()
	}()
	if err := s.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
		Check(err)
	}
}

// Check ends the program if err is not nil.
func Check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
}

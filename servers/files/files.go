package files

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
)

// Options configures a server. The zero value serves the working folder, writable.
type Options struct {
	// Roots are the folders to serve. Nil: the working folder. A folder below another is
	// left out.
	Roots []string

	// ReadOnly leaves out the tools that change something.
	ReadOnly bool

	// Secrets also serves files that usually hold secrets: folders of version control,
	// .env files, credentials and private keys. Without it they are withheld, except
	// for roots themselves.
	Secrets bool

	// ClientRoots says which clients are asked for their roots, to narrow the access of
	// their calls.
	ClientRoots ClientRoots

	// Timeout bounds one call. search and tree return their results so far when it
	// passes. Zero: 30 seconds; negative: no limit.
	Timeout time.Duration

	// Logger gets the errors that cannot be returned to a client. Nil discards them.
	Logger *slog.Logger
}

// ClientRoots says which clients are asked for their roots. Clients that do not
// declare roots are never asked.
type ClientRoots string

const (
	LegacyClientRoots ClientRoots = ""       // clients that speak 2025-11-25 and older
	AlwaysClientRoots ClientRoots = "always" // all; it costs a round trip with each call in 2026-07-28
	NoClientRoots     ClientRoots = "never"  // none
)

// UnmarshalText reads "legacy", "always" or "never".
func (c *ClientRoots) UnmarshalText(text []byte) error {
	switch v := ClientRoots(text); v {
	case "legacy":
		*c = LegacyClientRoots
	case AlwaysClientRoots, NoClientRoots:
		*c = v
	default:
		return fmt.Errorf("%q is not legacy, always or never", text)
	}
	return nil
}

// MarshalText is the inverse of UnmarshalText.
func (c ClientRoots) MarshalText() ([]byte, error) {
	if c == LegacyClientRoots {
		return []byte("legacy"), nil
	}
	return []byte(c), nil
}

// maxCalls bounds the concurrent calls that use files; others wait. Each may have
// some megabytes in memory and, deep in a walk, some hundred open files.
const maxCalls = 16

// server is the shared state of the handlers of one server.
type server struct {
	options Options
	mcp     *mcp.Server
	log     *slog.Logger
	roots   []*root // set by OnStart, before any handler runs
	watcher *watcher

	room chan struct{} // held by each call that works with files; capacity maxCalls
	turn chan struct{} // held while something is changed; capacity 1
}

// New returns a server. The folders are opened with the first request;
// [Options.Check] reports earlier if that would fail.
func New(o Options) *mcp.Server { return newServer(o).mcp }

func newServer(o Options) *server {
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	s := &server{options: o, log: o.Logger, room: make(chan struct{}, maxCalls), turn: make(chan struct{}, 1)}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	instructions := "Files below the folders that the tool roots names. Paths are relative to the root or, if there are several, begin with its name. Explore with list, tree and search; read long files in parts, by offset and limit."
	if o.ReadOnly {
		instructions += " Nothing can be changed."
	} else {
		instructions += " Prefer edit to write for files that exist."
	}
	s.mcp = &mcp.Server{
		Name:         "files",
		Title:        "Files",
		Version:      "0.1.0",
		Instructions: instructions,
		Logger:       o.Logger,
		OnStart: func(context.Context) (err error) {
			s.roots, err = openRoots(o.Roots)
			return err
		},
		OnShutdown: func(context.Context) error { return closeRoots(s.roots) },
	}
	s.watcher = newWatcher(s)
	s.mcp.Use(s.subscriptions)
	s.addLooking()
	s.addReading()
	if !o.ReadOnly {
		s.addWriting()
	}
	s.addReview()
	s.addResources()
	return s
}

// bound sets the time limit of a call.
func (s *server) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.options.Timeout < 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, s.options.Timeout, &timeUp{s.options.Timeout})
}

// timeUp is the cause of a call's end by [Options.Timeout].
type timeUp struct{ after time.Duration }

func (t *timeUp) Error() string {
	return fmt.Sprintf("stopped after %v; narrow the path, or start the server with a longer timeout", t.after)
}

// reads marks read-only tools. No tool reaches beyond the roots.
var reads = &mcp.ToolAnnotations{ReadOnly: new(true), OpenWorld: new(false)}

package launch

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/trace"
)

type echoed struct {
	Text string `json:"text"`
}

// echo returns a built-in server with one tool.
func echo(name string, _ []string, _ *slog.Logger) (mcp.Handler, error) {
	s := &mcp.Server{Name: name, Version: "1"}
	mcp.AddTool(s, mcp.Tool{Name: "echo"}, func(_ context.Context, in echoed) (string, error) { return in.Text, nil })
	return s, nil
}

// A built-in server is a server like others: its frames are recorded while a recording runs, and it
// speaks the revision that the client wants.
func TestBuiltinHasAWire(t *testing.T) {
	for _, rev := range mcp.Revisions() {
		t.Run(string(rev), func(t *testing.T) {
			var frames atomic.Int32
			var watched atomic.Bool
			client := &mcp.Client{Name: "c", Revisions: []mcp.Revision{rev}, OnFrame: func(trace.Frame) { frames.Add(1) }, Watched: &watched}
			e := &Env{Builtin: echo}
			s, err := e.Open(t.Context(), config.Server{Name: "b", Builtin: "b"}, client, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if s.Revision() != rev {
				t.Errorf("the revision is %s, want %s", s.Revision(), rev)
			}
			for _, on := range []bool{false, true} {
				watched.Store(on)
				before := frames.Load()
				if got, err := mcp.CallAs[string](t.Context(), s.Session, "echo", echoed{"hi"}); err != nil || got != "hi" {
					t.Errorf("the tool answered %q, %v", got, err)
				}
				want := int32(0)
				if on {
					want = 2
				}
				if got := frames.Load() - before; got != want {
					t.Errorf("watched %t: %d frames of a call, want %d", on, got, want)
				}
			}
		})
	}
}

// A call of a built-in server over its pipe, and of the same server by Client.Open, which makes no
// frames.
func BenchmarkBuiltin(b *testing.B) {
	call := func(b *testing.B, s *mcp.Session, err error) {
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		b.ReportAllocs()
		for b.Loop() {
			if res, err := s.CallTool(b.Context(), "echo", echoed{"hi"}); err != nil || res.IsError {
				b.Fatal(res, err)
			}
		}
	}
	b.Run("pipe", func(b *testing.B) {
		e := &Env{Builtin: echo}
		s, err := e.Open(b.Context(), config.Server{Name: "b", Builtin: "b"}, &mcp.Client{Name: "c"}, nil)
		if err != nil {
			b.Fatal(err)
		}
		call(b, s.Session, nil)
	})
	b.Run("open", func(b *testing.B) {
		h, _ := echo("b", nil, nil)
		s, err := (&mcp.Client{Name: "c"}).Open(b.Context(), h)
		call(b, s, err)
	})
}

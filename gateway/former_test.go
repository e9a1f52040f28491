package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/outcome"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// library is a server with a resource and a template, whose instances can fail to start or start late.
type library struct {
	fails atomic.Bool
	slow  atomic.Int64 // seconds
	n     atomic.Int64
	last  atomic.Pointer[mcp.Session]
	hold  atomic.Bool // reads block
	begun chan bool

	release chan bool // reads that block end when it is closed
}

func (s *library) source(disabled string) gateway.Source {
	return gateway.Source{Name: "library", Continues: true, Disabled: disabled, Open: func(ctx context.Context) (gateway.Upstream, error) {
		select {
		case <-time.After(time.Duration(s.slow.Load()) * time.Second):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if s.fails.Load() {
			return nil, errors.New("no such file")
		}
		n := s.n.Add(1)
		srv := &mcp.Server{Name: "library", Version: "1"}
		read := func(ctx context.Context) (string, error) {
			if s.hold.Load() {
				s.begun <- true
				<-s.release
			}
			return fmt.Sprint("read from ", n), ctx.Err()
		}
		mcp.AddResource(srv, mcp.Resource{URI: "library://1", Name: "one"}, read)
		mcp.AddResourceTemplate(srv, mcp.ResourceTemplate{URITemplate: "library://book/{id}", Name: "book"}, func(ctx context.Context, _ struct {
			ID string `json:"id"`
		}) (string, error) {
			return read(ctx)
		})
		mcp.AddTool(srv, mcp.Tool{Name: "keep"}, func(context.Context, struct{}) (string, error) { return "kept", nil })
		near, far := jsonrpc.Pipe()
		go srv.Serve(context.WithoutCancel(ctx), far)
		c := &mcp.Client{Name: "gw", Version: "1", Revisions: []mcp.Revision{mcp.V2025_11_25}}
		gateway.Relay(ctx, c)
		session, err := c.Connect(ctx, mcptest.Wire(near))
		if err == nil {
			s.last.Store(session)
		}
		return session, err
	}}
}

// A URI still belongs to its server while that is disabled, does not start or starts again: a read says so, or
// waits. A URI of no server does not exist.
func TestURIsOfAServerThatIsAway(t *testing.T) {
	for _, rev := range []mcp.Revision{mcp.V2026_07_28, mcp.V2025_06_18} {
		synctest.Test(t, func(t *testing.T) {
			var s library
			g := &gateway.Gateway{Name: "gw"}
			other := &mcp.Server{Name: "other", Version: "1"}
			mcp.AddResource(other, mcp.Resource{URI: "other://1", Name: "x"}, func(context.Context) (string, error) { return "x", nil })
			if err := g.Set("other", other); err != nil {
				t.Fatal(err)
			}
			stop := run(t, g, s.source(""))
			c := connect(t, g, rev)
			read := func(uri string) string {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				res, err := c.ReadResource(ctx, uri)
				if err != nil {
					return err.Error()
				}
				return res.Contents[0].Text
			}
			want := func(when, want string) {
				t.Helper()
				for _, uri := range []string{"library://1", "library://book/7"} {
					if got := read(uri); !strings.Contains(strings.ReplaceAll(got, `\"`, `"`), want) {
						t.Errorf("%s, %s: %q, want %q", when, uri, got, want)
					}
				}
				if got := read("library2://1"); !strings.Contains(got, `no resource`) && when != "crashed" { // then it may be one of this server
					t.Errorf("%s, a URI of no server: %q", when, got)
				}
			}
			replace := func(disabled string) {
				next := run(t, g, s.source(disabled))
				stop()
				stop = next
				synctest.Wait()
			}
			want("at first", "read from ")
			replace("patchbay enable library")
			want("disabled", `server "library" is disabled (patchbay enable library)`)
			if _, err := c.Complete(t.Context(), mcp.Feature{Kind: mcp.KindResource, Name: "library://book/{id}"}, "id", "x", nil); err == nil || !strings.Contains(err.Error(), "is disabled") {
				t.Errorf("disabled, a completion: %v", err)
			}
			s.slow.Store(20)
			replace("")
			want("starting", "read from ")
			s.slow.Store(0)
			s.fails.Store(true)
			replace("")
			want("failing", `server "library" is failing: no such file`)
			s.fails.Store(false)
			time.Sleep(5 * time.Minute)
			want("back", "read from ")
			s.fails.Store(true)
			s.last.Load().Close() // it crashes, and does not start
			time.Sleep(time.Second)
			want("crashed", `server "library" is failing: no such file`)
		})
	}
}

// A read that reached a server whose process then died does not say that it was not sent, although it could
// not be sent again.
func TestAReadThatWasSentSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := library{begun: make(chan bool, 1), release: make(chan bool)}
		defer close(s.release)
		g := &gateway.Gateway{Name: "gw"}
		src := s.source("")
		src.Share = gateway.PerPrincipal
		var unsent atomic.Bool
		g.Middleware = func(string) mcp.Middleware {
			return func(next mcp.Handler) mcp.Handler {
				return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
					res, err := next.Handle(ctx, req)
					if req.Method == "resources/read" {
						unsent.Store(outcome.Unsent(err))
					}
					return res, err
				})
			}
		}
		run(t, g, src)
		c := connect(t, g, mcp.V2025_06_18)
		if _, err := c.CallTool(t.Context(), "library_keep", nil); err != nil { // leaves state
			t.Fatal(err)
		}
		s.hold.Store(true)
		failed := make(chan error)
		go func() {
			_, err := c.ReadResource(t.Context(), "library://1")
			failed <- err
		}()
		<-s.begun
		s.hold.Store(false)
		s.last.Load().Close()
		err := <-failed
		if err == nil || unsent.Load() || strings.Contains(err.Error(), "did not reach it") || !strings.Contains(err.Error(), "This request had reached it, and its answer is lost") {
			t.Errorf("%v, unsent: %v", err, unsent.Load())
		}
		if _, err := c.ReadResource(t.Context(), "library://1"); err != nil {
			t.Errorf("the next read: %v", err)
		}
	})
}

package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// Questions of older servers that name no call (F1): on a pipe none does, and over HTTP those on
// the GET stream do not.

// oldServer has tools that ask, and others.
type oldServer struct {
	begun chan struct{} // gets a value when the tool "other" begins
	gate  chan struct{} // lets it go on before 2 ms are over
}

func newOldServer() *oldServer {
	return &oldServer{begun: make(chan struct{}, 1), gate: make(chan struct{}, 1)}
}

// release lets a tool "other" go on, unless the next one may already.
func (o *oldServer) release() {
	select {
	case o.gate <- struct{}{}:
	default:
	}
}

type numbered struct {
	Text string `json:"text"`
}

func (o *oldServer) server() *mcp.Server {
	s := &mcp.Server{Name: "old", Version: "1"}
	mcp.AddTool(s, mcp.Tool{Name: "form"}, func(ctx context.Context, in numbered) (string, error) {
		out, err := mcp.Elicit[numbered](ctx, in.Text)
		return out.Text, err
	})
	mcp.AddTool(s, mcp.Tool{Name: "model"}, func(ctx context.Context, in numbered) (string, error) {
		res, err := mcp.Sample(ctx, &mcp.SampleRequest{MaxTokens: 9, Messages: []mcp.SampleMessage{{Role: "user", Content: []mcp.Content{mcp.Text(in.Text)}}}})
		if err != nil {
			return "", err
		}
		return res.Text(), nil
	})
	mcp.AddTool(s, mcp.Tool{Name: "other"}, func(ctx context.Context, in numbered) (string, error) {
		select {
		case o.begun <- struct{}{}:
		default:
		}
		select {
		case <-o.gate:
		case <-time.After(2 * time.Millisecond):
		case <-ctx.Done():
		}
		return "other " + in.Text, nil
	})
	return s
}

// pipe serves a connection to it, whose questions name no call.
func (o *oldServer) pipe() jsonrpc.Conn {
	near, far := jsonrpc.Pipe()
	go o.server().Serve(context.Background(), far)
	return near
}

// handler serves it over Streamable HTTP with all questions on the GET stream, as some servers
// do.
func (o *oldServer) handler() http.Handler {
	var mu sync.Mutex
	type session struct {
		conn     jsonrpc.Conn
		answers  map[string]chan []byte
		messages chan []byte
	}
	sessions := map[string]*session{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m, _ := jsonrpc.Decode(body, jsonrpc.Limits{})
		mu.Lock()
		s := sessions[r.Header.Get("Mcp-Session-Id")]
		if m.Method == "initialize" {
			s = &session{o.pipe(), map[string]chan []byte{}, make(chan []byte, 100)}
			id := fmt.Sprint("s", len(sessions))
			sessions[id] = s
			w.Header().Set("Mcp-Session-Id", id)
			go func() {
				for {
					frame, err := s.conn.Read(nil)
					if err != nil {
						return
					}
					m, _ := jsonrpc.Decode(frame, jsonrpc.Limits{})
					if m.Kind() != jsonrpc.KindResponse {
						s.messages <- frame
						continue
					}
					mu.Lock()
					s.answers[string(m.ID.AppendJSON(nil))] <- frame
					mu.Unlock()
				}
			}()
		}
		var answer chan []byte
		if s != nil && m.Kind() == jsonrpc.KindRequest && r.Method == http.MethodPost {
			answer = make(chan []byte, 1)
			s.answers[string(m.ID.AppendJSON(nil))] = answer
		}
		mu.Unlock()
		switch {
		case s == nil:
			w.WriteHeader(http.StatusBadRequest)
		case r.Method == http.MethodDelete:
			s.conn.Close()
		case r.Method == http.MethodGet:
			w.Header().Set("Content-Type", "text/event-stream")
			for {
				w.(http.Flusher).Flush()
				select {
				case frame := <-s.messages:
					fmt.Fprintf(w, "data: %s\n\n", frame)
				case <-r.Context().Done():
					return
				}
			}
		default:
			if s.conn.Write(bytes.Clone(body)) != nil {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			if answer == nil {
				w.WriteHeader(http.StatusAccepted)
				return
			}
			select {
			case frame := <-answer:
				w.Header().Set("Content-Type", "application/json")
				w.Write(frame)
			case <-r.Context().Done():
			}
		}
	})
}

// gateway runs a gateway in front of it.
func (o *oldServer) gateway(t *testing.T, back string, rev mcp.Revision, share gateway.Share) *gateway.Gateway {
	t.Helper()
	url := ""
	if back != "pipe" {
		srv := httptest.NewServer(o.handler())
		t.Cleanup(srv.Close)
		url = srv.URL
	}
	ready := make(chan struct{})
	once := sync.OnceFunc(func() { close(ready) })
	g := &gateway.Gateway{Name: "gw", OnStatus: func(s gateway.Status) {
		if s.State == gateway.Ready {
			once()
		}
	}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.Run(ctx, gateway.Source{Name: "old", Share: share, Open: func(ctx context.Context) (gateway.Upstream, error) {
			c := &mcp.Client{Name: "gw", Version: "1", Revisions: []mcp.Revision{rev}}
			gateway.Relay(ctx, c)
			c.Revisions = []mcp.Revision{rev}
			if back == "pipe" {
				return c.Connect(ctx, mcptest.Wire(o.pipe()))
			}
			return c.Dial(ctx, url)
		}})
	}()
	t.Cleanup(func() { cancel(); <-done })
	<-ready
	return g
}

// person answers questions: "q 7" with "a 7".
type person struct {
	mu    sync.Mutex
	asked []string                   // guarded by mu
	wait  func(question string) bool // before an answer; false: no answer
}

func (p *person) answer(ctx context.Context, question string) (string, error) {
	p.mu.Lock()
	p.asked = append(p.asked, question)
	wait := p.wait
	p.mu.Unlock()
	if wait != nil && !wait(question) {
		<-ctx.Done()
		return "", context.Cause(ctx)
	}
	return strings.Replace(question, "q ", "a ", 1), nil
}

func (p *person) client(rev mcp.Revision) *mcp.Client {
	c := &mcp.Client{Name: "c", Version: "1", Revisions: []mcp.Revision{rev},
		OnSample: func(ctx context.Context, r *mcp.SampleRequest) (*mcp.SampleResult, error) {
			text, err := p.answer(ctx, r.Messages[0].Content[0].(mcp.TextContent).Text)
			return &mcp.SampleResult{Model: "m", Content: []mcp.Content{mcp.Text(text)}}, err
		},
		Roots: func(context.Context) ([]mcp.Root, error) { return []mcp.Root{{URI: "file:///home"}}, nil },
	}
	if elicits(rev) {
		c.OnElicit = func(ctx context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			text, err := p.answer(ctx, r.Message)
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"text": text}}, err
		}
	}
	return c
}

// dial connects the person to a gateway.
func (p *person) dial(t *testing.T, g http.Handler, wire string, rev mcp.Revision, h http.Header) *mcp.Session {
	t.Helper()
	c := p.client(rev)
	c.Header = h
	var s *mcp.Session
	var err error
	switch front := g.(*mcp.Server); wire {
	case "pipe":
		near, far := jsonrpc.Pipe()
		go front.Serve(context.Background(), far)
		s, err = c.Connect(t.Context(), mcptest.Wire(near))
	default:
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if wire == "http without GET" && r.Method == http.MethodGet {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			front.ServeHTTP(w, r)
		}))
		t.Cleanup(srv.Close)
		s, err = c.Dial(t.Context(), srv.URL)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func text(ctx context.Context, s *mcp.Session, tool, text string) string {
	res, err := s.CallTool(ctx, tool, numbered{text})
	if err != nil {
		return err.Error()
	}
	return res.Text()
}

// F1: a question that names no call reaches the user, and its answer the server; a concurrent call
// has its own result, even if it ends before the answer or is cancelled. The long form runs a
// hundred rounds.
func TestQuestionsBesideAnotherCall(t *testing.T) {
	rounds := long.Or(100, 12)
	for _, rev := range []mcp.Revision{mcp.V2024_11_05, mcp.V2025_03_26, mcp.V2025_06_18, mcp.V2025_11_25, mcp.V2026_07_28} {
		for _, front := range []string{"pipe", "http", "http without GET"} {
			for _, back := range []string{"pipe", "http"} {
				for _, share := range []gateway.Share{gateway.ShareAuto, gateway.Shared} {
					for _, tool := range []string{"model", "form"} {
						if tool == "form" && !elicits(rev) || rev == mcp.V2026_07_28 && front == "http without GET" {
							continue
						}
						t.Run(fmt.Sprint(rev, "/", front, "/to ", back, "/", share, "/", tool), func(t *testing.T) {
							t.Parallel()
							besideAnotherCall(t, rev, front, back, share, tool, rounds)
						})
					}
				}
			}
		}
	}
}

func besideAnotherCall(t *testing.T, rev mcp.Revision, front, back string, share gateway.Share, tool string, rounds int) {
	old := newOldServer()
	gw := &mcp.Server{Name: "gw", Version: "1", Handler: old.gateway(t, back, mcp.V2025_11_25, share)}
	user := &person{}
	s := user.dial(t, gw, front, rev, nil)
	for n := range rounds {
		question, other := fmt.Sprint("q ", n), fmt.Sprint(n)
		ctx, cancel := context.WithCancel(t.Context())
		results := make(chan string, 1)
		ended := make(chan struct{})
		user.mu.Lock()
		switch n % 3 {
		case 0: // both go on
			user.wait = nil
		case 1: // the other ends first
			user.wait = func(string) bool {
				old.release()
				select {
				case <-ended:
				case <-time.After(50 * time.Millisecond): // it has to wait for its turn
				}
				return true
			}
		case 2: // the other is cancelled
			user.wait = func(string) bool { cancel(); return true }
		}
		user.mu.Unlock()
		go func() {
			results <- text(ctx, s, "old_other", other)
			close(ended)
		}()
		select {
		case <-old.begun:
		case <-time.After(50 * time.Millisecond):
		}
		if got, want := text(t.Context(), s, "old_"+tool, question), fmt.Sprint("a ", n); got != want {
			t.Fatalf("round %d: the tool that asks = %q, want %q", n, got, want)
		}
		got := <-results
		if want := "other " + other; got != want && !(n%3 == 2 && strings.Contains(got, context.Canceled.Error())) {
			t.Fatalf("round %d: the other tool = %q, want %q", n, got, want)
		}
		cancel()
		for len(old.gate)+len(old.begun) > 0 {
			select {
			case <-old.gate:
			case <-old.begun:
			}
		}
	}
	user.mu.Lock()
	defer user.mu.Unlock()
	if len(user.asked) != rounds {
		t.Errorf("the user is asked %d times, want %d: %q", len(user.asked), rounds, user.asked)
	}
}

// F1: two principals share a connection for their calls: in 1,000 rounds (the long form) a question
// never reaches the other one, whatever revision they speak, and even if calls are cancelled. Until
// its first question, the server may be refused one, with an error that says why.
func TestQuestionsOfTwoPrincipals(t *testing.T) {
	rounds := long.Or(1000, 100)
	for _, revs := range [][2]mcp.Revision{{mcp.V2025_11_25, mcp.V2025_06_18}, {mcp.V2026_07_28, mcp.V2026_07_28}, {mcp.V2025_11_25, mcp.V2026_07_28}} {
		t.Run(fmt.Sprint(revs[0], " and ", revs[1]), func(t *testing.T) {
			t.Parallel()
			old := newOldServer()
			front := &mcp.Server{Name: "gw", Version: "1", Handler: old.gateway(t, "pipe", mcp.V2025_11_25, gateway.Shared)}
			front.HTTP.Principal = func(r *http.Request) string { return r.Header.Get("User") }
			var refused, answered atomic.Int64
			var wg sync.WaitGroup
			for i, name := range []string{"ada", "eve"} {
				user := &person{}
				s := user.dial(t, front, "http", revs[i], http.Header{"User": {name}})
				wg.Go(func() {
					for n := range rounds / 2 {
						var beside sync.WaitGroup
						beside.Go(func() {
							if got, want := text(t.Context(), s, "old_other", name), "other "+name; got != want {
								t.Errorf("%s: the other tool = %q, want %q", name, got, want)
							}
						})
						old.release()
						question := fmt.Sprint("q ", name, " ", n)
						switch got, want := text(t.Context(), s, "old_form", question), strings.Replace(question, "q", "a", 1); {
						case got == want:
							answered.Add(1)
						case strings.Contains(got, "cannot tell whose question"):
							refused.Add(1)
						default:
							t.Errorf("%s is answered %q, want %q", name, got, want)
						}
						beside.Wait()
					}
					user.mu.Lock()
					defer user.mu.Unlock()
					for _, q := range user.asked {
						if !strings.Contains(q, name) {
							t.Errorf("%s is asked %q", name, q)
						}
					}
				})
			}
			wg.Wait()
			if refused.Load() > 2 || answered.Load() < int64(rounds)-2 {
				t.Errorf("%d questions refused and %d answered, want at most 2 refused of %d", refused.Load(), answered.Load(), rounds)
			}
		})
	}
}

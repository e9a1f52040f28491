package streamable_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/transport/streamable"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// The calls of a session are bounded, including those whose connections are closed; other
// sessions are not affected.
func TestCallsOfASessionAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		s := newServer(t, func(ctx context.Context, _ *engine.Call) (engine.Result, error) {
			<-let
			return engine.Result{JSON: json.RawMessage(`{"content":[]}`)}, nil
		})
		s.Concurrent = 2
		h := open(t, s, "2025-11-25")
		ctx, leave := context.WithCancel(t.Context())
		_, first := background(s, request(toolCall(1), h...).WithContext(ctx))
		_, second := background(s, request(toolCall(2), h...))
		synctest.Wait()
		leave()
		synctest.Wait()
		w := serve(s, request(toolCall(3), h...))
		if w.Code != http.StatusTooManyRequests || code(w.Body.Bytes()) != jsonrpc.CodeInternal || !strings.Contains(w.Body.String(), "Limits.Concurrent") {
			t.Errorf("the third call = %d %s", w.Code, w.Body)
		}
		_, other := background(s, request(toolCall(1), open(t, s, "2025-11-25")...))
		synctest.Wait()
		close(let)
		for _, done := range []chan struct{}{first, second, other} {
			<-done
		}
		if w := serve(s, request(toolCall(4), h...)); w.Code != 200 {
			t.Errorf("a call when there is room again = %d %s", w.Code, w.Body)
		}
	})
}

// The unanswered questions of a session are bounded.
func TestQuestionsOfASessionAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := make(chan error, 3)
		s := newServer(t, func(ctx context.Context, c *engine.Call) (engine.Result, error) {
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					_, err := c.Ask(ctx, engine.Question{Method: revision.MethodElicit, Params: json.RawMessage(`{"message":"?"}`)})
					failed <- err
				})
			}
			wg.Wait()
			return engine.Result{JSON: json.RawMessage(`{"content":[]}`)}, nil
		})
		s.Concurrent = 2
		h := open(t, s, "2025-11-25")
		w, done := background(s, request(toolCall(1), h...))
		if err := <-failed; err == nil || !strings.Contains(err.Error(), "Limits.Concurrent") {
			t.Errorf("the third question = %v", err)
		}
		synctest.Wait()
		asked := w.messages()
		if len(asked) != 2 {
			t.Fatalf("asked %q", asked)
		}
		for _, q := range asked {
			var m struct{ ID json.RawMessage }
			if err := json.Unmarshal([]byte(q), &m); err != nil {
				t.Fatal(err)
			}
			serve(s, request(`{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":{"action":"decline"}}`, h...))
		}
		<-done
		for range 2 {
			if err := <-failed; err != nil {
				t.Errorf("a question that was answered = %v", err)
			}
		}
	})
}

// asking is a server of 2025-11-25 that sends requests on the GET stream and is slow to accept
// the answers.
type asking struct {
	frames []string
	take   func(body string)
}

func (a *asking) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		sse(w, ": here\n\n")
		for _, f := range a.frames {
			sse(w, "data: %s\n\n", f)
		}
		<-r.Context().Done()
		return
	}
	body, _ := io.ReadAll(r.Body)
	msg, err := jsonrpc.Decode(body, jsonrpc.Limits{})
	switch {
	case r.Method == http.MethodDelete:
	case err != nil:
		w.WriteHeader(400)
	case msg.Method == "initialize":
		w.Header().Set("Mcp-Session-Id", "s")
		w.Header().Set("Content-Type", "application/json")
		w.Write(jsonrpc.AppendResult(nil, msg.ID, []byte(`{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}`)))
	case msg.Kind() == jsonrpc.KindResponse:
		a.take(string(body))
		w.WriteHeader(http.StatusAccepted)
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

// PING-25-001: a ping of a server is answered with an empty result, whatever the client
// declared.
func TestClientAnswersPings(t *testing.T) {
	got := make(chan string, 1)
	hs := httptest.NewServer(&asking{frames: []string{`{"jsonrpc":"2.0","id":"p","method":"ping"}`}, take: func(body string) { got <- body }})
	defer hs.Close()
	c := dial(t, hs.URL, streamable.ClientOptions{})
	handshake(t, c, revision.V20251125)
	select {
	case body := <-got:
		if body != `{"jsonrpc":"2.0","id":"p","result":{}}` {
			t.Errorf("the answer is %s", body)
		}
	case <-time.After(time.Minute):
		t.Error("no answer")
	}
	c.Close()
}

// A server that sends pings and questions but accepts no answers gets a bounded number of them.
func TestClientAnswersOnlySoManyAtOnce(t *testing.T) {
	var mu sync.Mutex
	pings, refused := 0, 0
	let, filled := make(chan struct{}), make(chan struct{})
	var frames []string
	for range 64 {
		frames = append(frames, `{"jsonrpc":"2.0","id":ID,"method":"roots/list"}`)
	}
	for range 200 {
		frames = append(frames, `{"jsonrpc":"2.0","id":ID,"method":"ping"}`, `{"jsonrpc":"2.0","id":ID,"method":"roots/list"}`)
	}
	for i := range frames {
		frames[i] = strings.ReplaceAll(frames[i], "ID", jsonrpc.IntID(int64(i)).String())
	}
	frames = append(frames, `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:b"}}`)
	hs := httptest.NewServer(&asking{frames: frames, take: func(body string) {
		mu.Lock()
		switch {
		case strings.Contains(body, `"result"`):
			pings++
		case strings.Contains(body, "which is the limit"):
			refused++
		default:
			t.Errorf("the client posted %s", body)
		}
		if pings+refused == 16 {
			close(filled)
		}
		mu.Unlock()
		<-let
	}})
	defer hs.Close()
	inbox := &patient{noted: make(chan string, 1)}
	c := dial(t, hs.URL, streamable.ClientOptions{Inbox: inbox})
	handshake(t, c, revision.V20251125)
	select {
	case <-inbox.noted: // the stream is read to its end: nothing blocks it
	case <-time.After(time.Minute):
		t.Fatal("the client reads no further")
	}
	<-filled
	mu.Lock()
	if pings+refused != 16 || pings == 0 || refused == 0 {
		t.Errorf("%d pings answered and %d questions refused at once, want 16", pings, refused)
	}
	mu.Unlock()
	close(let)
	c.Close()
}

// patient is an Inbox that answers when released, or when its context ends.
type patient struct {
	noted chan string
	asked chan struct{} // nil: not counted
	let   chan struct{}
}

func (p *patient) Note(method string, _ json.RawMessage) { p.noted <- method }

func (p *patient) Question(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
	if p.asked != nil {
		p.asked <- struct{}{}
	}
	select {
	case <-p.let:
		return json.RawMessage(`{}`), nil
	case <-ctx.Done():
		return nil, errors.New("too late")
	}
}

// A question that arrives twice, as on a resumed stream, is asked once and has one answer.
func TestClientAnswersAQuestionOnce(t *testing.T) {
	got := make(chan string, 9)
	const question = `{"jsonrpc":"2.0","id":"q","method":"roots/list"}`
	hs := httptest.NewServer(&asking{
		frames: []string{question, question, `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:b"}}`},
		take:   func(body string) { got <- body },
	})
	defer hs.Close()
	inbox := &patient{noted: make(chan string, 1), asked: make(chan struct{}, 9), let: make(chan struct{})}
	c := dial(t, hs.URL, streamable.ClientOptions{Inbox: inbox})
	handshake(t, c, revision.V20251125)
	<-inbox.noted
	<-inbox.asked
	close(inbox.let)
	if body := <-got; body != `{"jsonrpc":"2.0","id":"q","result":{}}` {
		t.Errorf("the answer is %s", body)
	}
	c.Close()
	if len(inbox.asked) > 0 || len(got) > 0 {
		t.Errorf("asked %d times more, with %d more answers", len(inbox.asked), len(got))
	}
}

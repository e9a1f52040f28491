package duplex

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// hearer takes note of what reaches it, and takes its time for notifications.
type hearer struct {
	mu    sync.Mutex
	heard []string
}

func (l *hearer) hear(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard = append(l.heard, what)
}

func (l *hearer) Note(method string, _ json.RawMessage) {
	time.Sleep(time.Millisecond)
	l.hear(method)
}

func (l *hearer) Question(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
	l.hear(method)
	return json.RawMessage(`{}`), nil
}

// T-45: a question does not overtake the notifications that the server has sent before it: it may suspend the call that they
// belong to.
func TestQuestionAfterNotifications(t *testing.T) {
	near, far := jsonrpc.Pipe()
	l := new(hearer)
	c := NewClient(near, ClientOptions{Inbox: l, Logger: slog.New(slog.DiscardHandler)})
	defer c.Close()
	defer far.Close()
	go func() {
		for {
			raw, err := far.Read(nil)
			if err != nil {
				return
			}
			msg, err := jsonrpc.Decode(raw, jsonrpc.Limits{})
			if err != nil {
				t.Error(err)
				return
			}
			if msg.Method == "" { // the answer to the question
				continue
			}
			for i := range 3 {
				far.Write(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":%d}}`, i))
			}
			far.Write([]byte(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{}}`))
			time.Sleep(10 * time.Millisecond)
			far.Write(jsonrpc.AppendResult(nil, msg.ID, json.RawMessage(`{}`)))
		}
	}()
	if _, err := c.Call(t.Context(), &engine.Outgoing{Method: "tools/call", Params: json.RawMessage(`{}`), Inbox: l, Logs: true}); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		l.mu.Lock()
		heard := slices.Clone(l.heard)
		l.mu.Unlock()
		if len(heard) == 4 {
			if want := []string{"notifications/message", "notifications/message", "notifications/message", "elicitation/create"}; !slices.Equal(heard, want) {
				t.Errorf("heard %q, want %q", heard, want)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("heard only %q", heard)
		}
	}
}

package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcptest"
)

const canElicit = `{"elicitation":{"form":{},"url":{}}}`

// inputRequired reads an input_required result.
func inputRequired(t testing.TB, m jsonrpc.Message) (state string, questions map[string]struct {
	Method string
	Params json.RawMessage
}) {
	t.Helper()
	var w struct {
		ResultType    string
		RequestState  string
		InputRequests map[string]struct {
			Method string
			Params json.RawMessage
		}
	}
	if err := json.Unmarshal(m.Result, &w); err != nil || w.ResultType != "input_required" {
		t.Fatalf("got %s, want input_required", show(&m))
	}
	return w.RequestState, w.InputRequests
}

// accept makes inputResponses that accept every question with one field.
func accept[Q any](questions map[string]Q, content string) string {
	var parts []string
	for key := range questions {
		k, _ := json.Marshal(key)
		parts = append(parts, string(k)+`:{"action":"accept","content":`+content+`}`)
	}
	return `"inputResponses":{` + strings.Join(parts, ",") + `}`
}

func quote(s string) string { b, _ := json.Marshal(s); return string(b) }

// SEC: requestState is sealed and bound to the principal, the method, the target, the arguments and
// a time; a state that does not fit is refused and nothing runs (MRTR-26-006 to -011, -025). An
// answer is bound to the user who was asked (ELIC-26-018, -028).
func TestStateIsBound(t *testing.T) {
	mcptest.LeakCheck(t)
	d := new(deployer)
	s := asker(d)
	s.HTTP.Principal = func(r *http.Request) string { return r.Header.Get("Who") }
	srv := httptest.NewServer(s)
	defer srv.Close()

	const args = `"name":"book","arguments":{"date":"2026-12-24"}`
	state, qs := inputRequired(t, post(t, srv, "ada", "book", modern(1, "tools/call", canElicit, args)))
	answers := accept(qs, `{"date":"2026-12-27"}`)
	retry := func(args, state string) string {
		return modern(2, "tools/call", canElicit, args+","+answers+`,"requestState":`+quote(state))
	}
	t.Run("right", func(t *testing.T) {
		m := post(t, srv, "ada", "book", retry(args, state))
		if !bytes.Contains(m.Result, []byte("booked 2026-12-27")) {
			t.Errorf("got %s", show(&m))
		}
	})
	t.Run("members in another order", func(t *testing.T) {
		m := post(t, srv, "ada", "book", retry(`"arguments":{ "date" : "2026-12-24"},"name":"book"`, state))
		if !bytes.Contains(m.Result, []byte("booked 2026-12-27")) {
			t.Errorf("got %s", show(&m))
		}
	})
	refused := []struct {
		name, who, tool, frame string
	}{
		{"other arguments", "ada", "book", retry(`"name":"book","arguments":{"date":"2026-12-25"}`, state)},
		{"more arguments", "ada", "book", retry(`"name":"book","arguments":{"date":"2026-12-24","x":1}`, state)},
		{"another tool", "ada", "deploy", retry(`"name":"deploy","arguments":{"date":"2026-12-24"}`, state)},
		{"another principal", "bob", "book", retry(args, state)},
		{"nobody", "", "book", retry(args, state)},
		{"a changed byte", "ada", "book", retry(args, flip(state, len(state)/2))},
		{"a changed key id", "ada", "book", retry(args, flip(state, 0))},
		{"cut", "ada", "book", retry(args, state[:len(state)-4])},
		{"empty", "ada", "book", retry(args, "")},
		{"no base64", "ada", "book", retry(args, "%%%")},
		{"no string", "ada", "book", modern(2, "tools/call", canElicit, args+`,"requestState":{}`)},
		// MRTR-26-022
		{"responses are no object", "ada", "book", modern(2, "tools/call", canElicit, args+`,"inputResponses":[]`)},
		{"a response is no object", "ada", "book", modern(2, "tools/call", canElicit, args+`,"inputResponses":{"a":1}`)},
	}
	for _, tt := range refused {
		t.Run(tt.name, func(t *testing.T) {
			wantError(t, post(t, srv, tt.who, tt.tool, tt.frame), jsonrpc.CodeInvalidParams)
		})
	}
	t.Run("another key", func(t *testing.T) {
		other := httptest.NewServer(asker(d))
		defer other.Close()
		wantError(t, post(t, other, "", "book", retry(args, state)), jsonrpc.CodeInvalidParams)
	})
}

func flip(s string, i int) string {
	b := []byte(s)
	if b[i] == 'A' {
		b[i] = 'B'
	} else {
		b[i] = 'A'
	}
	return string(b)
}

// MRTR-26-010: a state has a time to live.
func TestStateExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := asker(new(deployer))
		s.State.TTL = time.Minute
		p := rawClient(t, s)
		const args = `"name":"book","arguments":{"date":"2026-12-24"}`
		p.send(modern(1, "tools/call", canElicit, args))
		state, qs := inputRequired(t, p.answer(1))
		time.Sleep(59 * time.Second)
		retry := args + "," + accept(qs, `{"date":"2026-12-27"}`) + `,"requestState":` + quote(state)
		p.send(modern(2, "tools/call", canElicit, retry))
		if m := p.answer(2); m.Error != nil {
			t.Errorf("after 59 s: %s", show(&m))
		}
		time.Sleep(3 * time.Second)
		p.send(modern(3, "tools/call", canElicit, retry))
		wantError(t, p.answer(3), jsonrpc.CodeInvalidParams)
	})
}

// once is a [store.States] in memory.
type once struct {
	mu     sync.Mutex
	states map[string][]byte
}

func (o *once) Put(_ context.Context, state []byte, _ time.Duration) (string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.states == nil {
		o.states = map[string][]byte{}
	}
	ref := fmt.Sprint(len(o.states) + 1)
	o.states[ref] = bytes.Clone(state)
	return ref, nil
}

func (o *once) Take(_ context.Context, ref string) ([]byte, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	state, ok := o.states[ref]
	if !ok {
		return nil, errors.New("no such state")
	}
	o.states[ref] = nil
	delete(o.states, ref)
	return state, nil
}

// With a store a state works once (MRTR-26-012), and nothing of the call travels.
func TestStateStore(t *testing.T) {
	s := asker(new(deployer))
	s.State.Store = new(once)
	p := rawClient(t, s)
	const args = `"name":"book","arguments":{"date":"2026-12-24"}`
	p.send(modern(1, "tools/call", canElicit, args))
	state, qs := inputRequired(t, p.answer(1))
	answered := "," + accept(qs, `{"date":"2026-12-27"}`) + `,"requestState":` + quote(state)
	// The state of another call is refused, and not spent.
	p.send(modern(9, "tools/call", canElicit, `"name":"deploy","arguments":{"name":"api"}`+answered))
	wantError(t, p.answer(9), jsonrpc.CodeInvalidParams)
	retry := args + answered
	p.send(modern(2, "tools/call", canElicit, retry))
	if m := p.answer(2); !bytes.Contains(m.Result, []byte("booked 2026-12-27")) {
		t.Errorf("got %s", show(&m))
	}
	p.send(modern(3, "tools/call", canElicit, retry))
	wantError(t, p.answer(3), jsonrpc.CodeInvalidParams)
}

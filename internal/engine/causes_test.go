package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/trace"
)

// caused returns a context of the request with an id in front.
func caused(id int64) context.Context {
	c := new(Context)
	c.Init(context.Background(), nil)
	c.Caused("front", jsonrpc.IntID(id))
	return c
}

func TestCauses(t *testing.T) {
	c := &Causes{Asker: func(params json.RawMessage) trace.Cause {
		if string(params) == `{"whose":1}` {
			return CauseOf(caused(1))
		}
		return trace.Cause{}
	}}
	c.Begin(caused(1), jsonrpc.IntID(10), &Outgoing{Method: "tools/call", Token: json.RawMessage(`5`), Logs: true})
	c.Begin(caused(2), jsonrpc.IntID(11), &Outgoing{Method: "tools/call", Token: json.RawMessage(`6`)})
	c.Begin(context.Background(), jsonrpc.IntID(12), &Outgoing{Method: "ping"})
	c.End(jsonrpc.IntID(11)) // what comes late is still known
	steps := []struct {
		dir  trace.Dir
		msg  string
		want string // id in front; empty: none
	}{
		{trace.Out, `{"id":10,"method":"tools/call"}`, "1"},
		{trace.Out, `{"id":12,"method":"ping"}`, ""},
		{trace.In, `{"id":10,"result":{}}`, "1"},
		{trace.In, `{"id":11,"result":{}}`, "2"},
		{trace.In, `{"id":"10","result":{}}`, ""},
		{trace.In, `{"id":99,"error":{}}`, ""},
		{trace.In, `{"method":"notifications/progress","params":{"progressToken":5}}`, "1"},
		{trace.In, `{"method":"notifications/progress","params":{"progressToken":6}}`, "2"},
		{trace.In, `{"method":"notifications/progress","params":{"progressToken":"5"}}`, ""},
		{trace.In, `{"method":"notifications/message","params":{}}`, "1"}, // the only one that asked for them
		{trace.Out, `{"method":"notifications/cancelled","params":{"requestId":11}}`, "2"},
		{trace.In, `{"method":"notifications/x","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":10}}}`, "1"},
		{trace.In, `{"method":"notifications/tools/list_changed"}`, ""},
		{trace.In, `{"id":10,"method":"elicitation/create","params":{"whose":1}}`, "1"}, // the server's ids are its own
		{trace.In, `{"id":11,"method":"elicitation/create","params":{}}`, ""},
		{trace.Out, `{"id":10,"result":{}}`, "1"},
		{trace.Out, `{"id":11,"result":{}}`, ""},
		{trace.In, `{"method":"notifications/cancelled","params":{"requestId":10}}`, "1"},
		{trace.In, `[{"id":10,"result":{}},{"method":"notifications/progress","params":{"progressToken":5}}]`, "1"},
		{trace.In, `[{"id":10,"result":{}},{"id":11,"result":{}}]`, ""},
		{trace.In, `[]`, ""},
		{trace.In, `stray print`, ""},
		{trace.In, `{"id":{},"method":7}`, ""},
	}
	for _, s := range steps {
		if got := c.of(&trace.Frame{Dir: s.dir, Msg: json.RawMessage(s.msg)}); got.ID != s.want {
			t.Errorf("%s %s is for %q, want %q", s.dir, s.msg, got, s.want)
		}
	}
	// The stream that a message is on decides first; the question's answer has no stream.
	onStream := &trace.Frame{Dir: trace.In, Msg: json.RawMessage(`{"id":77,"method":"roots/list"}`), For: CauseOf(caused(3))}
	if got := c.of(onStream); got.ID != "3" {
		t.Errorf("a question on a stream is for %q", got)
	}
	if got := c.of(&trace.Frame{Dir: trace.Out, Msg: json.RawMessage(`{"id":77,"result":{}}`)}); got.ID != "3" {
		t.Errorf("its answer is for %q", got)
	}
}

// TestCausesAreBounded: requests that ended, and questions of a server, do not pile up.
func TestCausesAreBounded(t *testing.T) {
	c := new(Causes)
	for n := range int64(5 * maxKept) {
		c.Begin(caused(n), jsonrpc.IntID(n), &Outgoing{Method: "tools/call"})
		c.End(jsonrpc.IntID(n))
		c.of(&trace.Frame{Dir: trace.In, Msg: fmt.Appendf(nil, `{"id":%d,"method":"ping"}`, n)})
	}
	if n, q := len(c.ended), len(c.questions.byID); n > maxKept || q > maxKept || len(c.open) > 0 {
		t.Errorf("%d requests and %d questions are kept, and %d are open", n, q, len(c.open))
	}
	late := func(n int64) string {
		return c.of(&trace.Frame{Dir: trace.In, Msg: fmt.Appendf(nil, `{"id":%d,"result":{}}`, n)}).ID
	}
	const last = 5*maxKept - 1
	if newest, oldest, gone := late(last), late(last-maxKept+1), late(last-maxKept); newest != fmt.Sprint(last) || oldest != fmt.Sprint(last-maxKept+1) || gone != "" {
		t.Errorf("late answers are for %q, %q and %q; want those to the last %d requests alone", newest, oldest, gone, maxKept)
	}
	c.Begin(caused(1), jsonrpc.IntID(last), &Outgoing{Method: "tools/call"}) // an id comes again
	c.End(jsonrpc.IntID(last))
	if got := late(last); got != "1" {
		t.Errorf("a late answer is for %q, want the newest request with its id", got)
	}
}

// TestTapSwitch: a tap that is not watched passes nothing on.
func TestTapSwitch(t *testing.T) {
	var on atomic.Bool
	var got []trace.Frame
	tap := &Tap{Conn: "c", Watched: &on, Tell: func(f trace.Frame) { got = append(got, f) }, Opener: trace.Cause{Conn: "front", ID: "1"}}
	tap.Frame(trace.Frame{Dir: trace.Out, Kind: trace.KindOpen})
	on.Store(true)
	tap.Frame(trace.Frame{Dir: trace.Out, Kind: trace.KindStart})
	tap.Frame(trace.Frame{Dir: trace.In, Kind: trace.KindStderr, Raw: []byte("x")})
	if len(got) != 2 || got[0].For != tap.Opener || got[1].For != (trace.Cause{}) || got[0].Time.IsZero() {
		t.Errorf("told %+v, want a start with its cause and a line without", got)
	}
	var none *Tap
	none.Frame(trace.Frame{})
	if none.On() || none.Unrecorded() != nil {
		t.Error("a nil tap is on")
	}
}

func TestWithoutCause(t *testing.T) {
	if got := CauseOf(caused(1)).String(); got != "front #1" {
		t.Errorf("cause %q", got)
	}
	if got := CauseOf(WithoutCause(caused(1))); got != (trace.Cause{}) {
		t.Errorf("cause %q of work that outlives the request", got)
	}
}

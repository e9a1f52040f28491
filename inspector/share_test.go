package inspector

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/trace"
)

// flow is traffic through a gateway, of which Frames get a share.
type flow struct {
	t    *testing.T
	f    *Frames
	s    *share
	last int // number of a call
	sent int // frames of plain calls
}

func newFlow(t *testing.T) *flow {
	f := &Frames{Max: 1 << 20, MaxBytes: 1 << 30}
	return &flow{t: t, f: f, s: newShare(&f.wide, &f.left)}
}

// anyCall stands for the number of a call in frames that were parsed before.
const anyCall = 42424242

// parsed holds frames by their lines.
var parsed = map[string]trace.Frame{}

// frame sends a frame, in which # is the number of the last call.
func (r *flow) frame(line string) {
	r.t.Helper()
	f, ok := parsed[line]
	if !ok {
		f = frameOf(r.t, strings.ReplaceAll(line, "#", fmt.Sprint(anyCall)))
		parsed[line] = f
	}
	of := func(s string) string { return strings.ReplaceAll(s, fmt.Sprint(anyCall), fmt.Sprint(r.last)) }
	f.Time, f.Conn, f.For.Conn, f.For.ID, f.Msg = time.Now(), of(f.Conn), of(f.For.Conn), of(f.For.ID), []byte(of(string(f.Msg)))
	if f.HTTP != nil && f.HTTP.Exchange == anyCall {
		h := *f.HTTP
		h.Exchange = r.last
		f.HTTP = &h
	}
	r.s.choose(f, r.f.Record)
}

// plain is a call as it usually is.
var plain = []string{
	`{"dir":"in","conn":"http-#","http":{"exchange":#,"method":"POST","path":"/mcp","headers":{"Accept":["a","b"],"Mcp-Name":["db_query"]}},"msg":{"jsonrpc":"2.0","id":#,"method":"tools/call","params":{"name":"db_query"}}}`,
	`{"dir":"out","conn":"db/stdio-1","for":{"conn":"http-#","id":#},"msg":{"jsonrpc":"2.0","id":#,"method":"tools/call","params":{"name":"query"}}}`,
	`{"dir":"in","conn":"db/stdio-1","for":{"conn":"http-#","id":#},"msg":{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":#,"progress":1}}}`,
	`{"dir":"in","conn":"db/stdio-1","for":{"conn":"http-#","id":#},"msg":{"jsonrpc":"2.0","id":#,"result":{}}}`,
	`{"dir":"out","conn":"http-#","http":{"exchange":#,"status":200},"msg":{"jsonrpc":"2.0","id":#,"result":{"resultType":"complete"}}}`,
}

// streamed is a plain call that is answered with streams of events on both hops.
var streamed = []string{
	`{"dir":"in","conn":"session-1","http":{"exchange":#,"method":"POST","path":"/mcp"},"msg":{"jsonrpc":"2.0","id":#,"method":"tools/call","params":{"name":"db_query"}}}`,
	`{"dir":"out","conn":"db/http-1","for":{"conn":"session-1","id":#},"http":{"exchange":7,"method":"POST","path":"/"},"msg":{"jsonrpc":"2.0","id":#,"method":"tools/call","params":{"name":"query"}}}`,
	`{"dir":"in","conn":"db/http-1","for":{"conn":"session-1","id":#},"http":{"exchange":7,"status":200,"headers":{"Content-Type":["text/event-stream"]}}}`,
	`{"dir":"in","conn":"db/http-1","for":{"conn":"session-1","id":#},"http":{"exchange":7},"msg":{"jsonrpc":"2.0","id":#,"result":{}}}`,
	`{"dir":"out","conn":"session-1","http":{"exchange":#,"status":200,"headers":{"Content-Type":["text/event-stream"]}}}`,
	`{"dir":"out","conn":"session-1","http":{"exchange":#},"kind":"event","event":"1"}`,
	`{"dir":"out","conn":"session-1","http":{"exchange":#},"msg":{"jsonrpc":"2.0","id":#,"result":{}}}`,
	`{"dir":"out","conn":"session-1","http":{"exchange":#},"kind":"close","note":"end of the stream"}`,
	`{"dir":"in","conn":"db/http-1","for":{"conn":"session-1","id":#},"http":{"exchange":7},"kind":"close","note":"end of the stream"}`,
}

// late is a plain call of a session whose answers come on another stream, as before 2025-03-26.
var late = []string{
	`{"dir":"in","conn":"session-2","http":{"exchange":#,"method":"POST","path":"/"},"msg":{"jsonrpc":"2.0","id":#,"method":"tools/call","params":{"name":"db_query"}}}`,
	`{"dir":"out","conn":"session-2","http":{"exchange":1},"msg":{"jsonrpc":"2.0","id":#,"result":{}}}`,
	`{"dir":"out","conn":"session-2","http":{"exchange":#,"status":202}}`,
}

// calls sends calls at an even rate.
func (r *flow) calls(n, perSecond int, lines ...string) {
	r.t.Helper()
	for range n {
		r.last++
		for _, line := range lines {
			r.frame(line)
		}
		r.sent += len(lines)
		time.Sleep(time.Second / time.Duration(perSecond))
	}
}

// shown returns the frames of a call that are there.
func (r *flow) shown(n int) (count int) {
	conn := fmt.Sprintf("http-%d", n)
	for _, e := range r.f.ring {
		if e == nil {
			continue
		}
		if f := e.packed.frame(); f.Conn == conn || f.For.Conn == conn {
			count++
		}
	}
	return count
}

// check checks that calls are there whole or not at all, and that the frames that are not there are counted.
func (r *flow) check() {
	r.t.Helper()
	if got, left := r.f.next-r.f.first, int(r.f.left.Load()); got+left != r.sent {
		r.t.Errorf("%d frames were taken and %d left out, of %d", got, left, r.sent)
	}
	for _, row := range all(r.t, r.f, "") {
		if row.Kind == rowRequest && row.Status != statusOK || (row.Kind != rowRequest || row.Server != "") && row.Cause == 0 {
			r.t.Fatalf("a part of a call is there: %+v", row)
		}
	}
	if len(r.s.calls) > 0 || r.s.held > 0 || r.s.bytes != 0 {
		r.t.Errorf("%d calls that are over are remembered, and %d bytes of them", len(r.s.calls), r.s.bytes)
	}
}

// Whole calls are left out while too many frames come, however they are answered, and all frames are counted.
func TestShare(t *testing.T) {
	long.WithoutRace(t)
	for _, tt := range []struct {
		name  string
		lines []string
	}{{"plain", plain}, {"with streams", streamed}, {"with answers on another stream", late}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newFlow(t)
				quiet := usualRate / len(tt.lines) * 9 / 10
				r.calls(usualBurst/len(tt.lines)-10, 1_000_000, tt.lines...) // at once
				r.calls(4*quiet, quiet, tt.lines...)
				if n := r.f.left.Load(); n != 0 || r.f.note() != "" {
					t.Fatalf("%d frames were left out at a rate below the bound: %s", n, r.f.note())
				}
				before := r.f.next
				r.calls(4_000, 2_500, tt.lines...)
				r.check()
				if took := r.f.next - before; took < usualRate || took > usualBurst+3*usualRate {
					t.Errorf("%d frames were taken in 1.6 s", took)
				}
				if want := fmt.Sprintf("%d frames of calls that succeeded were left out", r.f.left.Load()); !strings.HasPrefix(r.f.note(), want) {
					t.Errorf("the note is %q, want %q", r.f.note(), want)
				}
				time.Sleep(20 * time.Second)
				before = r.f.next
				r.calls(1000, 1000, tt.lines...) // a quiet time has all calls
				if got := r.f.next - before; got != 1000*len(tt.lines) {
					t.Errorf("%d frames of a quiet time were taken", got)
				}
				r.check()
			})
		})
	}
}

// While somebody looks for something, nothing is left out below 12,000 frames a second.
func TestShareOfSearch(t *testing.T) {
	long.WithoutRace(t)
	synctest.Test(t, func(t *testing.T) {
		r := newFlow(t)
		r.calls(3_000, 2_500, plain...)
		if r.f.left.Load() == 0 {
			t.Fatal("nothing was left out before")
		}
		before := r.f.left.Load()
		r.f.wide.Add(1)
		r.calls(6_000, 2_300, plain...)
		if n := r.f.left.Load() - before; n != 0 {
			t.Errorf("%d frames were left out", n)
		}
		r.check()
	})
}

// Calls that do not just succeed are there, with all of their frames, also while others are left out.
func TestShareTakes(t *testing.T) {
	long.WithoutRace(t)
	ask, sent, got, answer := plain[0], plain[1], plain[3], plain[4]
	failed := func(line string) string {
		return strings.NewReplacer(`"result":{}`, `"error":{"code":1,"message":"no"}`, `"result":{"resultType":"complete"}`, `"error":{"code":1,"message":"no"}`).Replace(line)
	}
	result := func(line, result string) string {
		return strings.NewReplacer(`"result":{}`, `"result":`+result, `"result":{"resultType":"complete"}`, `"result":`+result).Replace(line)
	}
	own := func(line string) string { return strings.Replace(line, `"id":#,`, `"id":"#",`, 1) }
	for _, tt := range []struct {
		name  string
		lines []string
	}{
		{"an error of the server", []string{ask, sent, failed(got), failed(answer)}},
		{"an error of the server that the gateway mends", []string{ask, sent, failed(got), answer}},
		{"an error of the gateway", []string{ask, failed(answer)}},
		{"an error of HTTP", []string{ask, strings.Replace(failed(answer), "200", "403", 1)}},
		{"an error of HTTP with a result", []string{ask, sent, got, strings.Replace(answer, "200", "502", 1)}},
		{"an error of HTTP without a message", []string{ask, `{"dir":"out","conn":"http-#","http":{"exchange":#,"status":500},"raw":"no"}`}},
		{"a tool error", []string{ask, sent, result(got, `{"isError":true,"content":[]}`), result(answer, `{"isError":true,"content":[]}`)}},
		{"a question as a result", []string{ask, sent, result(got, `{"resultType":"input_required"}`), result(answer, `{"resultType":"input_required"}`)}},
		{"a task", []string{ask, result(answer, `{"resultType":"task"}`)}},
		{"a question of the server", []string{ask, sent, `{"dir":"in","conn":"db/stdio-1","for":{"conn":"http-#","id":#},"msg":{"jsonrpc":"2.0","id":5,"method":"elicitation/create"}}`, `{"dir":"out","conn":"db/stdio-1","for":{"conn":"http-#","id":#},"msg":{"jsonrpc":"2.0","id":5,"result":{}}}`, got, answer}},
		{"a list that changes meanwhile", []string{ask, sent, `{"dir":"in","conn":"db/stdio-1","for":{"conn":"http-#","id":#},"msg":{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}}`, got, answer}},
		{"the start of a process", []string{ask, `{"dir":"out","conn":"db/stdio-1","for":{"conn":"http-#","id":#},"kind":"start","args":["db"]}`, sent, got, answer}},
		{"a connection that broke", []string{ask, `{"dir":"in","conn":"db/http-1","for":{"conn":"http-#","id":#},"http":{"exchange":7},"kind":"close","note":"refused"}`, sent, got, answer}},
		{"a call that is canceled", []string{own(ask), sent, `{"dir":"in","conn":"http-#","msg":{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"#"}}}`}},
		{"a call without an answer", []string{ask, sent, `{"dir":"out","conn":"http-#","http":{"exchange":#,"status":200}}`}},
		{"a call that takes long", []string{ask, sent}},
		{"an answer that is not a message", []string{ask, sent, `{"dir":"in","conn":"db/stdio-1","for":{"conn":"http-#","id":#},"raw":"hello"}`, got, answer}},
		{"a rare tool", []string{strings.ReplaceAll(ask, "db_query", "db_rare"), sent, got, answer}},
		{"a rare tool without its header", []string{strings.NewReplacer(`,"Mcp-Name":["db_query"]`, "", "db_query", "db_rare").Replace(ask), sent, got, answer}},
		{"a rare method", []string{strings.Replace(ask, "tools/call", "prompts/get", 1), sent, got, answer}},
		{"a rare client", []string{strings.Replace(ask, `"name":"db_query"`, `"name":"db_query","_meta":{"io.modelcontextprotocol/clientInfo":{"name":"me"}}`, 1), sent, got, answer}},
		{"a session that is opened", []string{strings.Replace(ask, "tools/call", "initialize", 1), answer}},
		{"a notification of a client", []string{`{"dir":"in","conn":"http-#","http":{"exchange":#,"method":"POST","path":"/"},"msg":{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}}`, `{"dir":"out","conn":"http-#","http":{"exchange":#,"status":202}}`}},
		{"HTTP without a message", []string{`{"dir":"in","conn":"http-#","http":{"exchange":#,"method":"DELETE","path":"/"}}`, `{"dir":"out","conn":"http-#","http":{"exchange":#,"status":200}}`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newFlow(t)
				r.calls(usualBurst/len(plain)+100, 100_000, plain...)
				r.last = 1_000_000
				n := r.last
				for _, line := range tt.lines {
					r.last = n
					r.frame(line)
					r.calls(20, 2_500, plain...)
				}
				if got := r.shown(n); got != len(tt.lines) && tt.name != "a call that takes long" {
					t.Errorf("%d of %d frames are there at once", got, len(tt.lines))
				}
				r.calls(200, 150, plain...) // longer than slowTime
				if got := r.shown(n); got != len(tt.lines) {
					t.Errorf("%d of %d frames are there", got, len(tt.lines))
				}
				if n := r.f.left.Load(); n < 100 {
					t.Errorf("only %d frames were left out", n)
				}
				r.last, r.sent = 2_000_000, r.sent+len(tt.lines)
				if got, left := r.f.next-r.f.first, int(r.f.left.Load()); got+left != r.sent {
					t.Errorf("%d frames were taken and %d left out, of %d", got, left, r.sent)
				}
				if len(r.s.calls) > 0 {
					t.Errorf("%d calls that are over are remembered", len(r.s.calls))
				}
			})
		})
	}
}

// Bounds hold for calls of any kind: those that fail, those of ever other tools, and those without an answer.
func TestShareIsBounded(t *testing.T) {
	long.WithoutRace(t)
	for _, tt := range []struct {
		name  string
		lines []string
		most  int // frames in 2 seconds
	}{
		{"all fail", []string{plain[0], strings.Replace(plain[4], "result", "error", 1)}, usualBurst + 2*usualRate + 3*fullRate},
		{"ever other tools", []string{strings.Replace(plain[0], "db_query", "#", 1), plain[4]}, usualBurst + 2*usualRate + 2*3*rareRate},
		{"without an answer", plain[:1], usualBurst + 2*usualRate + 3*fullRate},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newFlow(t)
				r.calls(20_000, 10_000, tt.lines...)
				r.s.end()
				if got, left := r.f.next-r.f.first, int(r.f.left.Load()); got+left != r.sent || got > tt.most {
					t.Errorf("%d frames were taken and %d left out, of %d; at most %d are to be taken", got, left, r.sent, tt.most)
				}
				if r.s.held > 0 || r.s.bytes != 0 || len(r.s.calls) > 2*maxCalls || len(r.s.kinds) > maxKinds+1 {
					t.Errorf("%d calls wait with %d bytes; %d calls and %d kinds are known", r.s.held, r.s.bytes, len(r.s.calls), len(r.s.kinds))
				}
			})
		})
	}
}

// Frames that are taken come through a Tee with all that they have.
func TestFollowTakesWholeFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tee trace.Tee
		defer tee.Close()
		f := new(Frames)
		stop := f.Follow(&tee)
		const last = 3000
		for n := 1; n <= last; n++ {
			for _, line := range plain {
				if n == last {
					line = strings.Replace(line, `"resultType":"complete"`, `"isError":true`, 1)
				}
				frame := frameOf(t, strings.ReplaceAll(line, "#", fmt.Sprint(n)))
				tee.Record(frame)
				clear(frame.Msg) // its bytes are not those that are kept
				if frame.HTTP != nil {
					clear(frame.HTTP.Headers)
				}
			}
			synctest.Wait() // the queue is empty
		}
		stop()
		rows := all(t, f, "status:tool-error")
		if len(rows) != 1 || f.left.Load() == 0 {
			t.Fatalf("%d rows failed, and %d frames were left out", len(rows), f.left.Load())
		}
		first := f.at(rows[0].N).packed.frame()
		if string(first.Msg) != fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"db_query"}}`, last) || first.HTTP == nil || first.HTTP.Path != "/mcp" || strings.Join(first.HTTP.Headers["Accept"], " ") != "a b" || first.Time.IsZero() {
			t.Errorf("the request is %+v with %+v", first, first.HTTP)
		}
	})
}

// Nothing is left out while a filter looks for what may be left out, or an agent asks.
func TestSearches(t *testing.T) {
	for filter, want := range map[string]bool{
		"": false, "hop:clients": false, "target:echo": true, "hop:clients id:7": true, "lost": true,
		"status:error": false, "status:error,open": false, "status:ok": true, "status:error,ok": true, "-status:error": true, "status:error target:echo": false,
		"dur:>50ms": true, "dur:>2s": false, "dur:>=1s": false, "dur:<2s": true, "-dur:>2s": true,
	} {
		q, err := parseFilter(filter)
		if err != nil {
			t.Fatal(err)
		}
		if got := q.searches(); got != want {
			t.Errorf("%q searches: %t, want %t", filter, got, want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		p := &Page{Frames: new(Frames), Report: func() *health.Report { return new(health.Report) }}
		wide := func(want int32) {
			t.Helper()
			synctest.Wait()
			if got := p.Frames.wide.Load(); got != want {
				t.Errorf("%d readers look for something, want %d", got, want)
			}
		}
		usual := hear(t, p, "want=rows", "")
		usual.rows()
		wide(0)
		search := hear(t, p, "want=rows&q=target:echo", "")
		search.rows()
		wide(1)
		search.close()
		wide(0)
		usual.close()
		p.hold()
		wide(1)
		time.Sleep(feedHoldTime + time.Second)
		wide(0)
	})
}

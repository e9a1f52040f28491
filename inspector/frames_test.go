package inspector

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/trace"
)

// begin is the time of the first frame of tests.
var begin = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// frameOf reads a frame from its line in a trace.
func frameOf(t testing.TB, line string) trace.Frame {
	t.Helper()
	var f trace.Frame
	if err := f.UnmarshalJSON([]byte(line)); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return f
}

// recorded returns Frames of the lines of a trace, a millisecond apart.
func recorded(t testing.TB, lines ...string) *Frames {
	t.Helper()
	f := new(Frames)
	for i, line := range lines {
		frame := frameOf(t, line)
		frame.Time = begin.Add(time.Duration(i) * time.Millisecond)
		f.Record(frame)
	}
	return f
}

// all returns the rows that fit a filter, oldest first.
func all(t testing.TB, f *Frames, filter string) []wireRow {
	t.Helper()
	q, err := parseFilter(filter)
	if err != nil {
		t.Fatal(err)
	}
	return f.page(q, 0, 0, 1<<30, func() bool { return false }).Rows
}

// brief shows rows in a line each: number, depth, dir, server, kind, what, id, status, time, text.
func briefly(rows []wireRow) string {
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "%d", r.N)
		if r.Cause > 0 {
			fmt.Fprintf(&b, "<%d+%d", r.Cause, r.Depth)
		}
		for _, s := range []string{r.Dir, r.Server, r.Client, r.Kind, r.Method, r.Target, r.ID, r.Status} {
			if s != "" {
				b.WriteString(" " + s)
			}
		}
		if r.Count > 0 {
			fmt.Fprintf(&b, " x%d", r.Count)
		}
		if r.Lost > 0 {
			fmt.Fprintf(&b, " lost %d", r.Lost)
		}
		if r.Ms != nil {
			fmt.Fprintf(&b, " %vms", *r.Ms)
		}
		if r.Text != "" {
			b.WriteString(" | " + r.Text)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestRows(t *testing.T) {
	tests := []struct {
		name   string
		frames []string
		want   string
	}{
		{"a call over two hops", []string{
			`{"dir":"in","conn":"http-3","http":{"exchange":3,"method":"POST","path":"/mcp"},"msg":{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"db_query","_meta":{"progressToken":"p","io.modelcontextprotocol/clientInfo":{"name":"claude","version":"1"}}}}}`,
			`{"dir":"out","conn":"db/stdio-1","for":{"conn":"http-3","id":7},"msg":{"jsonrpc":"2.0","id":12,"method":"tools/call","params":{"name":"query","_meta":{"progressToken":12}}}}`,
			`{"dir":"in","conn":"db/stdio-1","for":{"conn":"http-3","id":7},"msg":{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":12,"progress":1,"total":3}}}`,
			`{"dir":"in","conn":"db/stdio-1","for":{"conn":"http-3","id":7},"msg":{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":12,"progress":2,"total":3,"message":"rows"}}}`,
			`{"dir":"in","conn":"db/stdio-1","for":{"conn":"http-3","id":7},"msg":{"jsonrpc":"2.0","id":12,"result":{"content":[]}}}`,
			`{"dir":"out","conn":"http-3","http":{"exchange":3,"status":200},"msg":{"jsonrpc":"2.0","id":7,"result":{"content":[],"resultType":"complete"}}}`,
		}, `1 in claude request tools/call db_query 7 ok 5ms
2<1+1 out db claude request tools/call query 12 ok 3ms
3<2+2 in db claude note notifications/progress x2 | 2/3 rows
`},
		{"how requests end", []string{
			`{"dir":"out","conn":"stdio-1","msg":{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}}`,
			`{"dir":"out","conn":"stdio-1","msg":{"jsonrpc":"2.0","id":"1","method":"tools/call","params":{"name":"b"}}}`,
			`{"dir":"in","conn":"stdio-1","msg":{"jsonrpc":"2.0","id":"1","result":{"content":[{"type":"text","text":"no table"}],"isError":true}}}`,
			`{"dir":"in","conn":"stdio-1","msg":{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no tool \"a\""}}}`,
			`{"dir":"out","conn":"stdio-1","msg":{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow"}}}`,
			`{"dir":"out","conn":"stdio-1","msg":{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"the user"}}}`,
			`{"dir":"out","conn":"stdio-1","msg":{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"never"}}}`,
			`{"dir":"in","conn":"stdio-1","kind":"exit","note":"exit status 1"}`,
			`{"dir":"out","conn":"stdio-2","msg":{"jsonrpc":"2.0","id":3,"method":"ping"}}`,
			`{"dir":"in","conn":"stdio-3","msg":{"jsonrpc":"2.0","id":3,"result":{}}}`,
		}, `1 out stdio-1 request tools/call a 1 error 3ms | error -32602: no tool "a"
2 out stdio-1 request tools/call b "1" tool error 1ms | no table
5 out stdio-1 request tools/call slow 2 canceled
6<5+1 out stdio-1 note notifications/cancelled | the user
7 out stdio-1 request tools/call never 3 error | not answered before the connection was closed
8 in stdio-1 exit | exit status 1
9 out request ping 3 open
10 in answer 3 ok
`},
		{"HTTP without messages", []string{
			`{"dir":"out","conn":"http-1","http":{"exchange":1,"method":"POST","path":"/mcp"},"msg":{"jsonrpc":"2.0","method":"notifications/initialized"}}`,
			`{"dir":"in","conn":"http-1","http":{"exchange":1,"status":202}}`,
			`{"dir":"out","conn":"http-1","http":{"exchange":2,"method":"GET","path":"/mcp?token=abcdefgh"}}`,
			`{"dir":"in","conn":"http-1","http":{"exchange":2,"status":405}}`,
			`{"dir":"out","conn":"http-1","http":{"exchange":3,"method":"POST","path":"/mcp"},"msg":{"jsonrpc":"2.0","id":1,"method":"tools/list"}}`,
			`{"dir":"in","conn":"http-1","http":{"exchange":3,"status":401},"raw":"no"}`,
			`{"dir":"out","conn":"http-1","http":{"exchange":4,"method":"POST","path":"/mcp"},"msg":{"jsonrpc":"2.0","id":2,"method":"tools/list"}}`,
			`{"dir":"in","conn":"http-1","kind":"close","http":{"exchange":4},"note":"connection refused"}`,
			`{"dir":"in","conn":"http-1","raw":"Listening on 3000"}`,
		}, `1 out http-1 note notifications/initialized
3 out http-1 http GET /mcp?token=[redacted] error 1ms | HTTP 405 Method Not Allowed
5 out http-1 request tools/list 1 error 1ms | HTTP 401 Unauthorized
7 out http-1 request tools/list 2 error | connection refused
9 in http-1 bytes | not a message: Listening on 3000
`},
		{"a session of HTTP begins after its first request", []string{
			`{"dir":"in","conn":"http-1","http":{"exchange":1,"method":"POST","path":"/mcp"},"msg":{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"cursor","version":"1"}}}}`,
			`{"dir":"out","conn":"session-1","http":{"exchange":1,"status":200},"msg":{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","serverInfo":{"name":"s","version":"1"}}}}`,
			`{"dir":"in","conn":"session-1","http":{"exchange":2,"method":"POST","path":"/mcp"},"msg":{"jsonrpc":"2.0","id":2,"method":"ping"}}`,
		}, `1 in cursor request initialize 1 ok 1ms
3 in cursor request ping 2 open
`},
		{"a batch", []string{
			`{"dir":"in","conn":"c","msg":[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]}`,
			`{"dir":"out","conn":"c","msg":{"jsonrpc":"2.0","id":2,"result":{}}}`,
			`{"dir":"out","conn":"c","lost":2,"msg":{"jsonrpc":"2.0","id":1,"result":{}}}`,
			`{"dir":"in","conn":"c","msg":[{"jsonrpc":"2.0","id":3,"method":"ping"},{"jsonrpc":"2.0","id":4,"method":"ping"}]}`,
			`{"dir":"out","conn":"c","msg":[{"jsonrpc":"2.0","id":4,"result":{}},{"jsonrpc":"2.0","id":3,"result":{}}]}`,
		}, `1 in batch ok x2 lost 2 2ms | batch of 2
4 in batch ok x2 1ms | batch of 2
`},
		{"the start of a process, and text that deceives", []string{
			`{"dir":"out","conn":"db#2/stdio-1","kind":"start","note":"pid 7","args":["db","--token","hunter22"]}`,
			`{"dir":"in","conn":"db#2/stdio-1","kind":"stderr","raw":"\u001b[31mred\u202e"}`,
			`{"dir":"in","conn":"db#2/stdio-1","kind":"stderr","raw":"-----BEGIN PRIVATE KEY-----"}`,
			`{"dir":"in","conn":"db#2/stdio-1","kind":"stderr","raw":"MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj"}`,
			`{"dir":"in","conn":"db#2/stdio-1","msg":{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}}`,
			`{"dir":"in","conn":"db#2/stdio-1","msg":{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}}`,
			`{"dir":"in","conn":"db#2/stdio-1","msg":{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":{"password":"hunter22"}}}}`,
		}, `1 out db start | pid 7 db --token [redacted]
2 in db stderr | \u001b[31mred\u202e
3 in db stderr | [redacted]
4 in db stderr | [redacted]
5 in db note notifications/tools/list_changed x2
7 in db note notifications/message | info {"password":"[redacted]"}
`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := briefly(all(t, recorded(t, tt.frames...), "")); got != tt.want {
				t.Errorf("the rows are\n%s\nand should be\n%s", got, tt.want)
			}
		})
	}
}

// The frames of all rows together are all frames.
func rowFrames(f *Frames) (n int) {
	for i := f.first; i < f.next; i++ {
		e := f.at(i)
		if e.r == nil {
			continue
		}
		for at := e; at != nil; at = f.at(at.next) {
			n++
		}
	}
	return n
}

// The ring has as many frames and bytes as it may, however many are recorded, and forgets what belongs to dropped ones.
func TestRingIsBounded(t *testing.T) {
	f := &Frames{Max: 1000, MaxBytes: 1 << 30}
	call := func(i int) {
		f.Record(trace.Frame{Dir: trace.In, Conn: fmt.Sprintf("http-%d", i), HTTP: &trace.HTTP{Exchange: i, Method: "POST"}, Msg: json.RawMessage(`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"progressToken":1}}}`)})
		f.Record(trace.Frame{Dir: trace.Out, Conn: fmt.Sprintf("http-%d", i), HTTP: &trace.HTTP{Exchange: i, Status: 200}, Msg: json.RawMessage(`{"jsonrpc":"2.0","id":1,"result":{}}`)})
	}
	for i := range 10_000 {
		call(i + 1)
	}
	if n := f.next - f.first; n != 1000 || len(f.ring) > 1024 {
		t.Errorf("%d frames are kept in a ring of %d", n, len(f.ring))
	}
	if len(f.rows) > 4*1000 || len(f.conns) > maxConns+1000 || f.idle != len(f.conns)-500 {
		t.Errorf("%d keys and %d connections are kept", len(f.rows), len(f.conns))
	}
	if got := rowFrames(f); got != 1000 {
		t.Errorf("the rows have %d frames", got)
	}

	f = &Frames{MaxBytes: 1 << 20}
	for range 100 {
		f.Record(trace.Frame{Dir: trace.In, Conn: "c", Raw: make([]byte, 100<<10)})
	}
	if n := f.next - f.first; n < 8 || n > 10 || f.bytes > 1<<20 {
		t.Errorf("%d frames with %d bytes are kept", n, f.bytes)
	}
	f.Record(trace.Frame{Dir: trace.In, Conn: "c", Raw: make([]byte, 4<<20)})
	if n := f.next - f.first; n != 1 {
		t.Errorf("%d frames are kept beside a large one", n)
	}
	if got := briefly(all(t, f, "")); !strings.Contains(got, "not a message") {
		t.Errorf("the large frame is %q", got)
	}
}

// A secret does not show, also if it is learnt after its frame.
func TestSecretsAreRedactedWhenRead(t *testing.T) {
	f := recorded(t,
		`{"dir":"out","conn":"db/stdio-1","msg":{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"verysecretname","arguments":{"password":"hunter22","q":"learntlater"}}}}`,
		`{"dir":"in","conn":"db/stdio-1","msg":{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"bad learntlater, token=abcdefgh123"}}}`,
	)
	f.Redactor.Learn("learntlater", "verysecretname")
	got := briefly(all(t, f, ""))
	for _, secret := range []string{"hunter22", "learntlater", "verysecretname"} {
		if strings.Contains(got, secret) {
			t.Errorf("%s is in the row %s", secret, got)
		}
		if rows := all(t, f, "text:"+secret); len(rows) > 0 {
			t.Errorf("a filter finds %s", secret)
		}
		if rows := all(t, f, "target:"+secret); len(rows) > 0 {
			t.Errorf("a filter for targets finds %s", secret)
		}
	}
}

// 16 callers with 100 calls each: every request to a server is below the one that caused it.
func TestHopsAreJoined(t *testing.T) {
	f := new(Frames)
	const callers, calls = 16, 100
	for i := range calls {
		for c := range callers { // interleaved
			front := fmt.Sprintf("http-%d", i*callers+c+1)
			f.Record(frameOf(t, fmt.Sprintf(`{"dir":"in","conn":%q,"msg":{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"t%d"}}}`, front, i, c)))
		}
		for c := range callers {
			front := fmt.Sprintf("http-%d", i*callers+c+1)
			f.Record(frameOf(t, fmt.Sprintf(`{"dir":"out","conn":"db/stdio-1","for":{"conn":%q,"id":%d},"msg":{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"t%d"}}}`, front, i, i*callers+c, c)))
		}
		for c := callers - 1; c >= 0; c-- {
			front := fmt.Sprintf("http-%d", i*callers+c+1)
			f.Record(frameOf(t, fmt.Sprintf(`{"dir":"in","conn":"db/stdio-1","for":{"conn":%q,"id":%d},"msg":{"jsonrpc":"2.0","id":%d,"result":{}}}`, front, i, i*callers+c)))
			f.Record(frameOf(t, fmt.Sprintf(`{"dir":"out","conn":%q,"msg":{"jsonrpc":"2.0","id":%d,"result":{}}}`, front, i)))
		}
	}
	byN := map[int]wireRow{}
	rows := all(t, f, "")
	for _, r := range rows {
		byN[r.N] = r
	}
	joined := 0
	for _, r := range rows {
		if r.Status != "ok" {
			t.Fatalf("row %+v", r)
		}
		if r.Server == "" {
			continue
		}
		if front := byN[r.Cause]; front.Target != r.Target || front.Server != "" || r.Depth != 1 {
			t.Fatalf("%+v is below %+v", r, front)
		}
		joined++
	}
	if joined != callers*calls || len(rows) != 2*joined {
		t.Errorf("%d of %d rows are joined", joined, len(rows))
	}
}

func BenchmarkRecord(b *testing.B) {
	f := new(Frames)
	in := frameOf(b, `{"dir":"in","conn":"http-3","http":{"exchange":3,"method":"POST","path":"/mcp"},"msg":{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"db_query","arguments":{"q":"select"},"_meta":{"progressToken":"p","io.modelcontextprotocol/clientInfo":{"name":"claude","version":"1"}}}}}`)
	out := frameOf(b, `{"dir":"out","conn":"http-3","http":{"exchange":3,"status":200},"msg":{"jsonrpc":"2.0","id":7,"result":{"content":[],"resultType":"complete"}}}`)
	in.Time, out.Time = begin, begin
	b.ReportAllocs()
	for b.Loop() {
		f.Record(in)
		f.Record(out)
	}
}

// BenchmarkRows is the work for a page that follows the wire: rows with their JSON, per frame.
func BenchmarkRows(b *testing.B) {
	f := new(Frames)
	in := frameOf(b, `{"dir":"in","conn":"http-3","http":{"exchange":3,"method":"POST","path":"/mcp"},"msg":{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"db_query","arguments":{"q":"select"},"_meta":{"progressToken":"p","io.modelcontextprotocol/clientInfo":{"name":"claude","version":"1"}}}}}`)
	out := frameOf(b, `{"dir":"out","conn":"http-3","http":{"exchange":3,"status":200},"msg":{"jsonrpc":"2.0","id":7,"result":{"content":[],"resultType":"complete"}}}`)
	in.Time, out.Time = begin, begin
	q, _ := parseFilter("server:d* -status:open")
	b.ReportAllocs()
	seq, n := 0, 0
	for b.Loop() {
		f.Record(in)
		f.Record(out)
		if n += 2; n%200 == 0 {
			c := f.since(seq, 0, maxChanges, q)
			seq = c.Seq
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "frames/s")
}

package inspector

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/trace"
)

// twoHops is a call through a gateway that translates between two revisions, twice.
func twoHops(t testing.TB) *Frames {
	var lines []string
	for i := 1; i <= 2; i++ {
		lines = append(lines,
			fmt.Sprintf(`{"dir":"in","conn":"http-%d","http":{"exchange":%[1]d,"method":"POST","path":"/mcp","headers":{"Authorization":["Bearer abcdefghijkl"],"Mcp-Protocol-Version":["2026-07-28"]}},"msg":{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"db_query","arguments":{"q":"a\u202eb %[1]d"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"claude","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}}`, i),
			fmt.Sprintf(`{"dir":"out","conn":"db/stdio-1","for":{"conn":"http-%d","id":7},"msg":{"jsonrpc":"2.0","id":%[1]d,"method":"tools/call","params":{"name":"query","arguments":{"q":"a\u202eb %[1]d"},"_meta":{"progressToken":%[1]d}}}}`, i),
			fmt.Sprintf(`{"dir":"in","conn":"db/stdio-1","for":{"conn":"http-%d","id":7},"msg":{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%[1]d,"progress":1}}}`, i),
			fmt.Sprintf(`{"dir":"in","conn":"db/stdio-1","for":{"conn":"http-%d","id":7},"msg":{"jsonrpc":"2.0","id":%[1]d,"result":{"content":1}}}`, i),
			fmt.Sprintf(`{"dir":"out","conn":"http-%d","http":{"exchange":%[1]d,"status":200},"msg":{"jsonrpc":"2.0","id":7,"result":{"content":[],"resultType":"complete"}}}`, i),
		)
	}
	return recorded(t, append([]string{`{"dir":"out","conn":"db/stdio-1","kind":"session","note":"2025-11-25 with db 1: initialize"}`}, lines...)...)
}

func TestDetail(t *testing.T) {
	f := twoHops(t)
	d, ok := f.detail(7, "http://127.0.0.1:7420/mcp")
	if !ok {
		t.Fatal("row 7 is not there")
	}
	if len(d.Sides) != 2 || d.Before != 2 {
		t.Errorf("%d sides, and the call before is %d", len(d.Sides), d.Before)
	}
	ask := d.Sides[0]
	if ask.HTTP == nil || fmt.Sprint(ask.HTTP.Headers["Authorization"]) != "["+trace.Redacted+"]" || ask.Revision != "2026-07-28" || ask.Time != "2026-11-24T12:00:00.006000Z" {
		t.Errorf("the request is %+v %+v", ask, ask.HTTP)
	}
	if !strings.Contains(ask.JSON, `"q": "a\u202eb 2"`) || strings.ContainsRune(ask.JSON+ask.Raw, '\u202e') {
		t.Errorf("the change of direction is not visible: %s", ask.JSON)
	}
	if !ask.Checked || ask.Faults != nil {
		t.Errorf("the request is checked: %t, %q", ask.Checked, ask.Faults)
	}
	if d.Other == nil || d.Other.Row.Server != "db" || len(d.Other.Sides) != 3 {
		t.Fatalf("the other hop is %+v", d.Other)
	}
	if back := d.Other.Sides[2]; !back.Checked || !strings.Contains(strings.Join(back.Faults, ";"), "result.content") {
		t.Errorf("the answer of the server is checked: %t, %q", back.Checked, back.Faults)
	}
	var changed []string
	for _, c := range d.Other.Changed {
		changed = append(changed, c.Kind+" "+c.Path)
	}
	want := "changed request.id; changed request.params.name; removed request.params._meta[\"io.modelcontextprotocol/protocolVersion\"]; removed request.params._meta[\"io.modelcontextprotocol/clientInfo\"]; removed request.params._meta[\"io.modelcontextprotocol/clientCapabilities\"]; added request.params._meta.progressToken; changed answer.id; changed answer.result.content; added answer.result.resultType"
	if got := strings.Join(changed, "; "); got != want {
		t.Errorf("the translation changed\n%s\nnot\n%s", got, want)
	}
	if d.CLI != `patchbay call db_query '{"q":"a\u202eb 2"}'` || !strings.Contains(d.Curl, "Mcp-Name: db_query") || !strings.Contains(d.Test, `session.Call(t.Context(), "db_query"`) {
		t.Errorf("again:\n%s\n%s\n%s", d.CLI, d.Curl, d.Test)
	}
	if back, _ := f.detail(8, ""); back.Other == nil || back.Other.Row.N != 7 || back.CLI != `patchbay call db/query '{"q":"a\u202eb 2"}'` {
		t.Errorf("from the other side: %+v", back)
	}
	for _, n := range []int{0, 3, -1, 1 << 40, 11} {
		if n == 3 {
			continue // a row
		}
		if _, ok := f.detail(n, ""); ok {
			t.Errorf("%d is a row", n)
		}
	}
	list, ok := f.compare(2, 7)
	if got := fmt.Sprint(list); !ok || got != `[{request.params.arguments.q changed "a\u202eb 1" "a\u202eb 2"}]` {
		t.Errorf("the two calls differ in %s", got)
	}
}

// The structured content of an answer is checked against the output schema that the server listed last, on both hops.
func TestDetailOutput(t *testing.T) {
	list := func(id int, schema string) string {
		return fmt.Sprintf(`{"dir":"in","conn":"db/stdio-1","msg":{"jsonrpc":"2.0","id":%d,"result":{"tools":[{"name":"other","inputSchema":{}},{"name":"query","inputSchema":{},"outputSchema":%s}]}}}`, id, schema)
	}
	for _, tt := range []struct{ result, want string }{
		{`"structuredContent":{"n":1}`, "fits"},
		{`"structuredContent":{"n":"one"}`, "result.structuredContent does not fit the output schema of the tool: /n "},
		{`"_meta":{}`, "result.structuredContent is missing, and the tool has an output schema"},
		{`"isError":true`, ""},
		{`"resultType":"input_required"`, ""},
	} {
		f := recorded(t,
			`{"dir":"out","conn":"db/stdio-1","msg":{"jsonrpc":"2.0","id":1,"method":"tools/list"}}`, list(1, `{"type":"null"}`),
			`{"dir":"out","conn":"db/stdio-1","msg":{"jsonrpc":"2.0","id":2,"method":"tools/list"}}`, list(2, `{"type":"object","properties":{"n":{"type":"integer"}}}`),
			`{"dir":"in","conn":"http-1","msg":{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"db_query"}}}`,
			`{"dir":"out","conn":"db/stdio-1","for":{"conn":"http-1","id":7},"msg":{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"query"}}}`,
			`{"dir":"in","conn":"db/stdio-1","for":{"conn":"http-1","id":7},"msg":{"jsonrpc":"2.0","id":3,"result":{"content":[],`+tt.result+`}}}`,
			`{"dir":"out","conn":"http-1","msg":{"jsonrpc":"2.0","id":7,"result":{"content":[],`+tt.result+`}}}`,
		)
		for _, n := range []int{5, 6} {
			d, ok := f.detail(n, "")
			if !ok || len(d.Sides) != 2 {
				t.Fatalf("row %d: %+v", n, d)
			}
			got := strings.Join(d.Sides[1].Faults, "; ")
			if d.Sides[1].Fits {
				got += "fits"
			}
			if !strings.HasPrefix(got, tt.want) || tt.want == "" && got != "" {
				t.Errorf("row %d with %s: %q, want %q", n, tt.result, got, tt.want)
			}
		}
	}
}

// A server whose name is a URL has all of it.
func TestServerOfURL(t *testing.T) {
	f := recorded(t, `{"dir":"out","conn":"http://127.0.0.1:1/mcp#2/http-1","msg":{"jsonrpc":"2.0","id":1,"method":"tools/list"}}`)
	if got := all(t, f, "")[0].Server; got != "http://127.0.0.1:1/mcp" {
		t.Errorf("the server is %q", got)
	}
}

// A download is a trace: without a filter all of it, redacted.
func TestDownload(t *testing.T) {
	p := &Page{Frames: twoHops(t), Report: func() *health.Report { return new(health.Report) }}
	p.once.Do(p.route)
	get := func(query string) (frames []trace.Frame) {
		w := httptest.NewRecorder()
		p.mux.ServeHTTP(w, httptest.NewRequestWithContext(asAdmin(t.Context()), http.MethodGet, "http://127.0.0.1/ui/trace?"+query, nil))
		if strings.Contains(w.Body.String(), "abcdefghijkl") {
			t.Error("the trace has a secret")
		}
		for f, err := range trace.Read(bytes.NewReader(w.Body.Bytes())) {
			if err != nil {
				t.Fatal(err)
			}
			frames = append(frames, f)
		}
		return frames
	}
	if got := get(""); len(got) != 11 {
		t.Errorf("%d frames", len(got))
	}
	if got := get("q=server:db+kind:request"); len(got) != 4 || got[0].For.Conn != "http-1" {
		t.Errorf("%d frames of calls to db", len(got))
	}
}

// A filter is refused with the term that is wrong, or decides about rows without a panic.
func TestFilter(t *testing.T) {
	f := twoHops(t)
	for _, tt := range []struct {
		filter, want string // numbers of rows, or the error
	}{
		{"", "[1 2 3 4 7 8 9]"},
		{"server:db", "[1 3 4 8 9]"},
		{"-server:db", "[2 7]"},
		{"hop:clients", "[2 7]"},
		{"hop:servers kind:request,session", "[1 3 8]"},
		{"client:CLAUDE method:tools/*", "[2 3 7 8]"},
		{"dur:>2ms", "[2 7]"},
		{"dur:<3ms", "[3 8]"},
		{"target:query", "[3 8]"},
		{`text:"b 2"`, "[7 8]"},
		{`"B 2" dir:in`, "[7]"},
		{"id:7 conn:http-2", "[7]"},
		{"cause:7", "[7 8]"},
		{"status:ok", "[2 3 7 8]"},
		{"status:open", "[]"},
		{"colour:red", `"colour" is not a word of filters`},
		{"status:wrong", `"wrong" is none of`},
		{"dur:fast", `the term dur:fast: "fast" is not a time`},
		{"method:[", "is not a pattern"},
		{`text:"open`, "are not closed"},
		{"server:", "has no value"},
		{"cause:x", "not the number"},
		{strings.Repeat("a ", 40), "more than 30 terms"},
		{strings.Repeat("a", 3000), "longer than"},
	} {
		q, err := parseFilter(tt.filter)
		got := fmt.Sprint(err)
		if err == nil {
			ns := []int{}
			for _, r := range f.page(q, 0, 0, 100, func() bool { return false }).Rows {
				ns = append(ns, r.N)
			}
			got = fmt.Sprint(ns)
		}
		if err == nil && got != tt.want || err != nil && !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s, not %s", tt.filter, got, tt.want)
		}
	}
}

func FuzzFilter(f *testing.F) {
	for _, s := range []string{"server:db method:tools/* dur:>50ms status:error text:\"x y\"", "-a:b", "--", `"`, ":", "a:\"\"b", "dur:>=1h", "method:[a-", "- x"} {
		f.Add(s)
	}
	frames := twoHops(f)
	f.Fuzz(func(t *testing.T, s string) {
		q, err := parseFilter(s)
		if err != nil {
			if q != nil {
				t.Fatalf("%q gives a filter and an error", s)
			}
			return
		}
		rows := frames.page(q, 0, 0, 100, func() bool { return false }).Rows
		if len(rows) > 7 {
			t.Fatalf("%q finds %d rows", s, len(rows))
		}
	})
}

// The rows of pages follow each other without a gap, in both directions.
func TestPagesOfRows(t *testing.T) {
	f := new(Frames)
	for i := range 1000 {
		ping(f, i)
	}
	never := func() bool { return false }
	var down, up []int
	for after, more := 0, true; more; {
		p := f.page(nil, 0, after, 77, never)
		for _, r := range p.Rows {
			down = append(down, r.N)
		}
		after, more = p.Rows[len(p.Rows)-1].N, p.More
	}
	for before, more := 0, true; more; {
		p := f.page(nil, before, -1, 77, never)
		for i := range p.Rows {
			up = append(up, p.Rows[len(p.Rows)-1-i].N)
		}
		before, more = p.Rows[0].N, p.More
	}
	for i := range 1000 {
		if len(down) != 1000 || len(up) != 1000 || down[i] != i+1 || up[i] != 1000-i {
			t.Fatalf("%d rows down, %d up", len(down), len(up))
		}
	}
}

// Messages of any form make rows and details.
func FuzzDetail(f *testing.F) {
	for _, s := range []string{`{}`, `[]`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":[1,{"y":null}]}}}`, `{"id":1,"result":{"isError":true}}`, `x`, `{"method":1,"id":{}}`, `[{"id":1,"method":"a"},3]`} {
		f.Add([]byte(s), []byte(`{"id":1,"result":{}}`))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		frames := new(Frames)
		frames.Record(trace.Frame{Dir: trace.In, Conn: "http-1", Msg: a})
		frames.Record(trace.Frame{Dir: trace.Out, Conn: "db/x", For: trace.Cause{Conn: "http-1", ID: "1"}, Msg: b})
		frames.Record(trace.Frame{Dir: trace.In, Conn: "db/x", Msg: a})
		frames.Record(trace.Frame{Dir: trace.Out, Conn: "http-1", Msg: b})
		for n := range 5 {
			d, ok := frames.detail(n, "http://127.0.0.1/mcp")
			if !ok {
				continue
			}
			if _, err := json.Marshal(d); err != nil {
				t.Fatal(err)
			}
			frames.compare(1, n)
		}
		if got := rowFrames(frames); got != 4 {
			t.Fatalf("the rows have %d of 4 frames", got)
		}
	})
}

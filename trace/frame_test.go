package trace_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/patchbay-dev/patchbay/trace"
)

func TestFrameLine(t *testing.T) {
	at := time.Date(2026, 7, 28, 9, 30, 0, 1, time.UTC)
	tests := []struct {
		name  string
		frame trace.Frame
		want  string
	}{
		{
			"smallest",
			trace.Frame{Dir: trace.In, Msg: json.RawMessage(`{"jsonrpc":"2.0","method":"ping","id":1}`)},
			`{"dir":"in","msg":{"jsonrpc":"2.0","method":"ping","id":1}}`,
		},
		{
			"all members",
			trace.Frame{
				Dir: trace.Out, Time: at, Conn: "c1", Lost: 2, Msg: json.RawMessage(`{"id":1}`),
				HTTP: &trace.HTTP{Method: "POST", Path: "/mcp", Status: 200, Headers: map[string][]string{"B": {"1", "2"}, "A": {`"`}}},
			},
			`{"dir":"out","time":"2026-07-28T09:30:00.000000001Z","conn":"c1","lost":2,` +
				`"http":{"method":"POST","path":"/mcp","status":200,"headers":{"A":["\""],"B":["1","2"]}},"msg":{"id":1}}`,
		},
		{"numbers, escapes and duplicates stay", trace.Frame{Dir: trace.In, Msg: json.RawMessage(`{"a":1.50e1,"a":9007199254740993,"b":"\u0041\/"}`)},
			`{"dir":"in","msg":{"a":1.50e1,"a":9007199254740993,"b":"\u0041\/"}}`},
		{"line breaks go", trace.Frame{Dir: trace.In, Msg: json.RawMessage("{\r\n \"a\" : \"\\n\" }\n")}, `{"dir":"in","msg":{"a":"\n"}}`},
		{"msg that is no JSON", trace.Frame{Dir: trace.In, Msg: json.RawMessage("Listening on :80\n")}, `{"dir":"in","raw":"Listening on :80\n"}`},
		{"raw text", trace.Frame{Dir: trace.In, Raw: []byte("{")}, `{"dir":"in","raw":"{"}`},
		{"raw bytes", trace.Frame{Dir: trace.In, Raw: []byte{0xff, 0}}, `{"dir":"in","base64":"/wA="}`},
		{
			"what the recorder adds",
			trace.Frame{
				Dir: trace.In, Conn: "http-1", Transport: "http", Size: 900, Cut: 880, Event: "e-4", Raw: []byte(`{"jsonrpc":"2.0","id"`),
				HTTP: &trace.HTTP{Exchange: 3},
			},
			`{"dir":"in","conn":"http-1","transport":"http","size":900,"cut":880,"event":"e-4","http":{"exchange":3},"raw":"{\"jsonrpc\":\"2.0\",\"id\""}`,
		},
		{"a child", trace.Frame{Dir: trace.Out, Kind: trace.KindStart, Note: "pid 7", Args: []string{"npx", `a "b"`}},
			`{"dir":"out","kind":"start","note":"pid 7","args":["npx","a \"b\""]}`},
		{"nothing but a kind", trace.Frame{Dir: trace.In, Kind: trace.KindClose}, `{"dir":"in","kind":"close"}`},
		{"nothing but HTTP", trace.Frame{Dir: trace.In, HTTP: &trace.HTTP{Status: 202}}, `{"dir":"in","http":{"status":202}}`},
		{"an empty line", trace.Frame{Dir: trace.In}, `{"dir":"in","raw":""}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := string(tt.frame.Append(nil))
			if got != tt.want {
				t.Fatalf("Append gave\n%s, want\n%s", got, tt.want)
			}
			var back trace.Frame
			if err := json.Unmarshal([]byte(got), &back); err != nil {
				t.Fatalf("Unmarshal(%s): %v", got, err)
			}
			if again := string(back.Append(nil)); again != got {
				t.Errorf("read and written again gave\n%s, want\n%s", again, got)
			}
			if !back.Time.Equal(tt.frame.Time) {
				t.Errorf("time read back = %v, want %v", back.Time, tt.frame.Time)
			}
		})
	}
}

func TestReadReportsBadLinesAndGoesOn(t *testing.T) {
	long := `{"dir":"in","raw":"` + strings.Repeat("x", 200) + `"}`
	in := strings.Join([]string{
		`{"dir":"in","msg":1,"unknown":{"kept":"no"}}`,
		``,
		`{"dir":"up","msg":1}`,
		`{"Dir":"in","msg":1}`,
		`{"dir":"in","dir":"out","msg":1}`,
		`{"dir":"in","msg":1,"raw":""}`,
		`{"dir":"in","msg":1,"size":-1}`,
		`{"dir":"in","msg":1,"args":[1]}`,
		`{"dir":"in"}`,
		`{"dir":"in","msg":1} {}`,
		`[1]`,
		long,
		`{"dir":"out","http":{"status":202}}`,
		`{"dir":"out","msg":{"cut`,
	}, "\n")
	var got []string
	for f, err := range trace.ReadBounded(strings.NewReader(in), 100) {
		var bad *trace.LineError
		switch {
		case err == nil:
			got = append(got, "frame "+string(f.Dir))
		case errors.As(err, &bad):
			got = append(got, fmt.Sprint("bad line ", bad.Line, " ", errors.Is(err, trace.ErrLineTooLong)))
		default:
			t.Fatal(err)
		}
	}
	want := []string{
		"frame in", "bad line 3 false", "bad line 4 false", "bad line 5 false", "bad line 6 false", "bad line 7 false",
		"bad line 8 false", "bad line 9 false", "bad line 10 false", "bad line 11 false", "bad line 12 true", "frame out", "bad line 14 false",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Read (-want +got):\n%s", diff)
	}
}

func TestReadReturnsErrorOfReader(t *testing.T) {
	f, err := os.Open(t.TempDir()) // a folder opens and cannot be read
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	n := 0
	for _, err := range trace.Read(f) {
		n++
		var bad *trace.LineError
		if err == nil || errors.As(err, &bad) {
			t.Errorf("Read of a folder gave %v, want the reader's error", err)
		}
	}
	if n != 1 {
		t.Errorf("Read of a folder yielded %d times, want once", n)
	}
}

// A frame that was read is written so that it reads as the same frame.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		`{"dir":"in","msg":{"jsonrpc":"2.0","id":1,"method":"ping"}}`,
		`{"dir":"out","time":"2026-07-28T09:30:00.000000001Z","conn":"c","lost":1,"raw":"x\n"}`,
		`{"dir":"in","base64":"/wA="}`,
		`{"dir":"in","http":{"method":"POST","path":"/","status":1,"headers":{"A":["b"]}}}`,
		`{"dir":"out","kind":"start","transport":"stdio","size":3,"cut":1,"event":"e","note":"pid 1","args":["a"]}`,
		"{\"dir\":\"in\",\"msg\": [\t1 ]}\r\n\n{",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		for frame, err := range trace.Read(bytes.NewReader(in)) {
			if err != nil {
				continue
			}
			line := frame.Append(nil)
			if bytes.ContainsAny(line, "\n\r") {
				t.Fatalf("Append broke the line: %q", line)
			}
			var again trace.Frame
			if err := json.Unmarshal(line, &again); err != nil {
				t.Fatalf("Unmarshal(%q): %v", line, err)
			}
			if second := again.Append(nil); !bytes.Equal(line, second) {
				t.Fatalf("frame of %q written as %q, then as %q", in, line, second)
			}
		}
	})
}

// Frames that count as messages: not error pages, nor frames with a kind.
func TestFrameMessage(t *testing.T) {
	msg := json.RawMessage(`{"jsonrpc":"2.0","method":"ping","id":1}`)
	for _, tt := range []struct {
		name  string
		frame trace.Frame
		want  bool
	}{
		{"message", trace.Frame{Msg: msg}, true},
		{"stray bytes in its place", trace.Frame{Msg: json.RawMessage("hello")}, true},
		{"answer", trace.Frame{Msg: msg, HTTP: &trace.HTTP{Status: 200}}, true},
		{"answer that is a JSON-RPC error", trace.Frame{Msg: msg, HTTP: &trace.HTTP{Status: 400}}, true},
		{"error page", trace.Frame{Msg: json.RawMessage(`{"error":"no"}`), HTTP: &trace.HTTP{Status: 400}}, false},
		{"error page that is no JSON", trace.Frame{Msg: json.RawMessage(`"jsonrpc`), HTTP: &trace.HTTP{Status: 500}}, false},
		{"cut", trace.Frame{Raw: msg[:4], Cut: 9}, false},
		{"event", trace.Frame{Kind: trace.KindEvent, Msg: msg}, false},
		{"nothing", trace.Frame{HTTP: &trace.HTTP{Status: 202}}, false},
	} {
		if got := tt.frame.Message(); got != tt.want {
			t.Errorf("%s: Message() = %v, want %v", tt.name, got, tt.want)
		}
	}
}

// A line of 100 MB that is not a frame is skipped in bounded memory, and later lines are read.
func TestReadPassesOverAHugeLine(t *testing.T) {
	huge := io.LimitReader(endless{}, 150<<20)
	in := io.MultiReader(huge, strings.NewReader("\n{\"dir\":\"in\",\"msg\":1}\n"))
	var got []string
	for f, err := range trace.ReadBounded(in, 1<<20) {
		got = append(got, fmt.Sprint(string(f.Msg), errors.Is(err, trace.ErrLineTooLong)))
	}
	if want := []string{"true", "1false"}; !slices.Equal(got, want) {
		t.Errorf("Read gave %q, want %q", got, want)
	}
}

// endless is a line without an end.
type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = '{'
	}
	return len(b), nil
}

// The name of a server can have slashes and number signs, and a later connection a number.
func TestServer(t *testing.T) {
	for conn, want := range map[string]string{
		"": "", "http-1": "", "db/stdio-1": "db", "db#2/stdio-1": "db", "#2/stdio-1": "#2", "db#x/stdio-1": "db#x",
		"http://127.0.0.1:1/mcp#2/http-1": "http://127.0.0.1:1/mcp",
	} {
		if got := (&trace.Frame{Conn: conn}).Server(); got != want {
			t.Errorf("%q: %q, want %q", conn, got, want)
		}
	}
}

// A line of a later format is refused in words; without a version, or with the one of today, it is read.
func TestFrameOfALaterFormat(t *testing.T) {
	for line, want := range map[string]string{
		`{"v":1,"dir":"in","raw":"x"}`: "",
		`{"v":2,"dir":"in","raw":"x"}`: "written by a newer version (format 2, this one knows 1); upgrade",
	} {
		for _, err := range trace.Read(strings.NewReader(line)) {
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s: %v, want %q", line, err, want)
			}
		}
	}
}

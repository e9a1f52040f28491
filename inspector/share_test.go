package inspector

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/trace"
)

// callsThrough records calls through a gateway at an even rate, each with its four frames, and a note that belongs to no call.
func callsThrough(t *testing.T, record func(trace.Frame), from time.Time, first, n, perSecond int) time.Time {
	t.Helper()
	for i := first; i < first+n; i++ {
		at := from.Add(time.Duration(i-first) * time.Second / time.Duration(perSecond))
		front, cause := fmt.Sprintf("http-%d", i%50), fmt.Sprintf(`"for":{"conn":"http-%d","id":%d}`, i%50, i)
		for _, text := range []string{
			fmt.Sprintf(`{"dir":"in","conn":%q,"http":{"exchange":%d,"method":"POST","path":"/mcp"},"msg":{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"db_query"}}}`, front, i+1, i),
			fmt.Sprintf(`{"dir":"out","conn":"db/stdio-1",%s,"msg":{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"query"}}}`, cause, i),
			fmt.Sprintf(`{"dir":"in","conn":"db/stdio-1",%s,"msg":{"jsonrpc":"2.0","id":%d,"result":{}}}`, cause, i),
			fmt.Sprintf(`{"dir":"out","conn":%q,"http":{"exchange":%d,"status":200},"msg":{"jsonrpc":"2.0","id":%d,"result":{}}}`, front, i+1, i),
		} {
			f := frameOf(t, text)
			f.Time = at
			record(f)
		}
		if i%100 == 0 {
			f := frameOf(t, `{"dir":"in","conn":"db/stdio-1","kind":"stderr","raw":"a line"}`)
			f.Time = at
			record(f)
		}
	}
	return from.Add(time.Duration(n) * time.Second / time.Duration(perSecond))
}

// Whole calls are left out while too many frames come: no call is there without its answer or its other hop, and a page is
// told.
func TestShare(t *testing.T) {
	for _, tt := range []struct {
		name      string
		perSecond int // calls
		all       bool
	}{{"below the bound", fullRate / 4 * 9 / 10, true}, {"above it", fullRate / 4 * 3 / 2, false}} {
		t.Run(tt.name, func(t *testing.T) {
			f := &Frames{Max: 1 << 20, MaxBytes: 1 << 30}
			record := func(frame trace.Frame) {
				if f.share.wants(&frame) {
					f.Record(frame)
				}
			}
			const calls = 10_000
			at := callsThrough(t, record, begin, 0, calls, tt.perSecond)
			callsThrough(t, record, at.Add(time.Hour), calls, 10, 10) // quiet again
			rows := all(t, f, "")
			fronts, hops, lines := 0, 0, 0
			for _, r := range rows {
				switch {
				case r.Kind == "stderr":
					lines++
				case r.Status != "ok":
					t.Fatalf("a part of a call is there: %+v", r)
				case r.Server == "":
					fronts++
				default:
					if hops++; r.Cause == 0 {
						t.Fatalf("a call of the gateway has no cause: %+v", r)
					}
				}
			}
			if fronts != hops {
				t.Errorf("%d calls of clients, and %d of the gateway", fronts, hops)
			}
			q, err := parseFilter("")
			if err != nil {
				t.Fatal(err)
			}
			p := f.page(q, 0, -1, 1, func() bool { return false })
			note := strings.Join(p.Faults, "; ")
			switch {
			case tt.all && (fronts != calls+10 || note != ""):
				t.Errorf("%d of %d calls are there, with the note %q", fronts, calls+10, note)
			case !tt.all && (fronts < 100 || fronts > calls*2/3):
				t.Errorf("%d of %d calls are there", fronts, calls)
			case !tt.all && note != fmt.Sprintf("%d frames were left out, of whole calls, while more than 12000 came in a second", 4*(calls+10-fronts)):
				t.Errorf("the note is %q, for %d calls", note, fronts)
			}
			if want := calls/100 + 1; lines != want {
				t.Errorf("%d lines of standard error are there, want all %d", lines, want)
			}
			if f.share.without.Load() {
				t.Error("calls that are over are remembered")
			}
			for i := range 10 { // a quiet time has all calls
				if got := all(t, f, fmt.Sprintf("id:%d", calls+i)); len(got) != 2 {
					t.Errorf("call %d of a quiet time has %d rows, want 2", i, len(got))
				}
			}
		})
	}
}

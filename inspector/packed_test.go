package inspector

import (
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/trace"
)

// A frame comes out of its packed form as it went in, also from between others.
func TestPackedFrame(t *testing.T) {
	var all packedFrame
	var ends []int
	var want []string
	for _, line := range []string{
		`{"dir":"in","raw":"x"}`,
		`{"dir":"out","time":"2026-11-24T12:00:00.123456789Z","kind":"start","conn":"db/stdio-1","transport":"stdio","for":{"conn":"http-1","id":"a"},"lost":3,"note":"pid 7","args":["db","","--x"]}`,
		`{"dir":"in","time":"1969-12-31T23:59:59.5+02:00","conn":"c","size":2000000,"cut":5,"event":"7","base64":"AP8="}`,
		`{"dir":"in","conn":"http-2","http":{"exchange":2,"method":"POST","path":"/mcp?a=1","headers":{"Accept":["a","","b"],"Empty":[],"Host":["é"]}},"msg":{"jsonrpc":"2.0","id":1,"method":"ping"}}`,
		`{"dir":"out","conn":"http-2","http":{"exchange":2,"status":202}}`,
		`{"dir":"out","http":{}}`,
	} {
		f := frameOf(t, line)
		if got := string(packFrame(&f).frame().Append(nil)); got != line {
			t.Errorf("a packed frame is\n%s\nwant\n%s", got, line)
		}
		all = appendFrame(all, &f)
		ends, want = append(ends, len(all)), append(want, line)
	}
	begin := 0
	for i, end := range ends {
		if got := string(all[begin:end].frame().Append(nil)); got != want[i] {
			t.Errorf("frame %d of several is\n%s\nwant\n%s", i, got, want[i])
		}
		begin = end
	}
}

// FuzzPackedFrame packs frames of any line of a trace.
func FuzzPackedFrame(f *testing.F) {
	f.Add(`{"dir":"in","conn":"http-2","http":{"exchange":2,"headers":{"A":["a"]}},"msg":{"id":1}}`)
	f.Add(`{"time":"0000-01-01T00:00:00Z","dir":"out","raw":"` + strings.Repeat("x", 300) + `"}`)
	f.Fuzz(func(t *testing.T, line string) {
		var frame trace.Frame
		if frame.UnmarshalJSON([]byte(line)) != nil {
			t.Skip()
		}
		got, want := packFrame(&frame).frame(), frame
		if !got.Time.Equal(want.Time) {
			t.Errorf("the time is %v, want %v", got.Time, want.Time)
		}
		got.Time, want.Time = time.Time{}, time.Time{}
		if got, want := string(got.Append(nil)), string(want.Append(nil)); got != want {
			t.Errorf("a packed frame is\n%s\nwant\n%s", got, want)
		}
	})
}

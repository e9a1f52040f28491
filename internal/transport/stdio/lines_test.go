package stdio

import (
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/trace"
)

func TestLineTap(t *testing.T) {
	var got []string
	l := &lineTap{tap: &engine.Tap{Tell: func(f trace.Frame) {
		if f.Kind != trace.KindStderr || f.Dir != trace.In {
			t.Errorf("frame %+v, want standard error", f)
		}
		got = append(got, string(f.Raw))
	}}}
	long := strings.Repeat("x", maxLine)
	for _, part := range []string{"a", "b\nc\r\n\nd", long, "\n", "e\nf"} {
		if n, err := l.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatalf("Write = %d, %v", n, err)
		}
	}
	l.flush()
	want := []string{"ab", "c", "d" + long[1:], "x", "e", "f"}
	if !slices.Equal(got, want) {
		t.Errorf("lines of %d, want %d: %.200q", len(got), len(want), got)
	}
}

package inspector

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The page shows the times of a recording: for each of 1,000 calls, some of them at once, the one between the line of the
// request and the line of its answer, to 0.01 ms.
func TestTimesOfRecording(t *testing.T) {
	const calls = 1000
	seed := [2]uint64{20, 1000}
	random := rand.New(rand.NewPCG(seed[0], seed[1]))
	type line struct {
		Time time.Time       `json:"time"`
		Dir  string          `json:"dir"`
		Conn string          `json:"conn"`
		Msg  json.RawMessage `json:"msg"`
	}
	var text bytes.Buffer
	write := func(l line) {
		b, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(append(b, '\n'))
	}
	now := begin
	pass := func() { now = now.Add(time.Duration(random.ExpFloat64() * float64(time.Millisecond))) }
	var open []int
	answer := func() {
		n := random.IntN(len(open))
		id := open[n]
		open = append(open[:n], open[n+1:]...)
		pass()
		write(line{now, "in", "stdio-1", json.RawMessage(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}`, id))})
	}
	for id := 1; id <= calls; id++ {
		pass()
		write(line{now, "out", "stdio-1", json.RawMessage(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo"}}`, id))})
		open = append(open, id)
		for len(open) > 0 && (len(open) > 8 || random.IntN(2) == 0) {
			answer()
		}
	}
	for len(open) > 0 {
		answer()
	}

	path := filepath.Join(t.TempDir(), "t.jsonl")
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	frames, err := OpenRecording(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	began, want := map[string]time.Time{}, map[string]float64{} // milliseconds, as the lines of the file have them
	for _, raw := range bytes.Split(bytes.TrimSpace(text.Bytes()), []byte("\n")) {
		var l line
		var msg struct {
			ID     json.Number
			Method string
		}
		if err := json.Unmarshal(raw, &l); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(l.Msg, &msg); err != nil {
			t.Fatal(err)
		}
		if id := msg.ID.String(); msg.Method != "" {
			began[id] = l.Time
		} else {
			want[id] = float64(l.Time.Sub(began[id])) / float64(time.Millisecond)
		}
	}
	rows := all(t, frames, "method:tools/call")
	if len(rows) != calls {
		t.Fatalf("%d rows, want %d", len(rows), calls)
	}
	for _, r := range rows {
		if r.Ms == nil {
			t.Fatalf("call %s has no time (seed %v)", r.ID, seed)
		}
		if math.Abs(*r.Ms-want[r.ID]) > 0.001 { // the page shows two digits after the point
			t.Fatalf("call %s took %v ms on the page, %v ms in the recording (seed %v)", r.ID, *r.Ms, want[r.ID], seed)
		}
	}
}

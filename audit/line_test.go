package audit

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// TestLineIsMarshal compares lines with what package jsonx makes of entries whose fields are set at
// random, and with none and all of them set.
func TestLineIsMarshal(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 3000 {
		likely := random.Float64()
		switch round {
		case 0:
			likely = 0
		case 1:
			likely = 1
		}
		var e Entry
		fill(t, random, likely, reflect.ValueOf(&e).Elem())
		e.Time = time.Unix(random.Int64N(1<<33), random.Int64N(1e9)).UTC().Truncate(time.Microsecond)
		l, err := e.encode()
		if err != nil {
			t.Fatal(err)
		}
		before := Head{random.Int64N(1 << 60), digest([]byte{byte(round)})}
		got, _, head := l.join(nil, nil, before)
		e.Hash, e.Prev, e.Seq = head.Hash, before.Hash, before.Seq+1
		want, err := jsonx.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if want = append(text.Escape(nil, string(want)), '\n'); !bytes.Equal(got, want) {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
		if hash := hashOf(before.Hash, jsonx.Without(nil, bytes.TrimSpace(got), "hash")); hash != head.Hash {
			t.Fatalf("hash %s, want %s, of %s", head.Hash, hash, got)
		}
		if len(got) > l.size() {
			t.Fatalf("%d bytes, more than size says, %d", len(got), l.size())
		}
	}
}

// A terminal shows a line without obeying it, and a reader gets the texts as they were.
func TestLineOnTerminal(t *testing.T) {
	const bad = "a\u009b2J\u202eb\u2066\u2028\x1b\x7f"
	e := Entry{Kind: CallEnd, Node: bad, Tool: bad, Server: &Server{Name: bad}, Principal: &Principal{ID: bad}, Detail: json.RawMessage(`{"x":"` + "\u009b" + `"}`), Time: time.Unix(0, 0).UTC(), V: 1}
	l, err := e.encode()
	if err != nil {
		t.Fatal(err)
	}
	raw, _, _ := l.join(nil, nil, Head{1, genesis})
	if bytes.ContainsFunc(raw, text.Obeyed) {
		t.Errorf("the line has control characters: %q", raw)
	}
	got, err := decode(bytes.TrimSpace(raw))
	if err != nil || got.Tool != bad || got.Server.Name != bad || string(got.Detail) != `{"x":"\u009b"}` {
		t.Errorf("%v, %+v", err, got)
	}
	if s := clipped(strings.Repeat("\u009b", 1000), 200); len(text.Escape(nil, s)) > 200 {
		t.Errorf("a clipped text has %d bytes in a line", len(text.Escape(nil, s)))
	}
}

func TestLineOfBadTime(t *testing.T) {
	e := Entry{Time: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}
	if _, err := e.encode(); err == nil {
		t.Error("a line has a time of the year 10000")
	}
}

// fill sets the fields of a struct at random.
func fill(t *testing.T, random *rand.Rand, likely float64, v reflect.Value) {
	texts := []string{"", "tool", `a "quoted" \ text`, "Grüße, 世界\n\u2028", "<b>&", "\u009b2J\u202e\x7f"}
	for i := range v.NumField() {
		field := v.Field(i)
		if !field.CanSet() || random.Float64() > likely {
			continue
		}
		switch value := field.Addr().Interface().(type) {
		case *json.RawMessage:
			*value = json.RawMessage(`{"hash":"x` + "\u2066" + `","prev":"","seq":0}`)
			continue
		case *time.Time:
			continue
		case *[]byte:
			*value = []byte{1, 2, 3, 255}
			continue
		case *[]string:
			*value = texts[:random.IntN(len(texts))]
			continue
		}
		switch field.Kind() {
		case reflect.String:
			field.SetString(texts[random.IntN(len(texts))])
		case reflect.Int, reflect.Int64:
			field.SetInt(random.Int64N(1<<40) - 1<<20)
		case reflect.Bool:
			field.SetBool(true)
		case reflect.Float64:
			field.SetFloat([]float64{0, 1, 0.001, 12345.678, 1e-7, 1e21, -2.5}[random.IntN(7)])
		case reflect.Pointer:
			field.Set(reflect.New(field.Type().Elem()))
			fill(t, random, likely, field.Elem())
		default:
			t.Fatalf("the test sets no %s", field.Type())
		}
	}
}

func BenchmarkLine(b *testing.B) {
	e := Entry{
		Arguments: &Arguments{Digest: digest(nil)}, Call: newID(), Client: &Client{IP: "127.0.0.1", Name: "host", Revision: "2026-07-28", Version: "1"},
		Decision: &Decision{Effect: "allow", Policy: digest(nil), Rule: "short messages"}, Kind: CallBegin, Node: "node", Principal: &Principal{ID: "ann", Issuer: "https://login.example.com"},
		Server: &Server{Name: "echo"}, Time: time.Now().UTC(), Tool: "echo", Trace: "4bf92f3577b34da6a3ce929d0e0e4736", V: 1,
	}
	var buf, body []byte
	head := Head{1, genesis}
	b.ReportAllocs()
	for b.Loop() {
		l, err := e.encode()
		if err != nil {
			b.Fatal(err)
		}
		buf, body, head = l.join(buf[:0], body, head)
		l.free()
	}
}

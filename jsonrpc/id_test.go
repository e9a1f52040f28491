package jsonrpc_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// BASE-26-003: an id is a string or an integer. BASE-26-006: it comes back with
// its value and kind.
func TestParseID(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want jsonrpc.ID
		json string
	}{
		{`1`, jsonrpc.IntID(1), `1`},
		{`"1"`, jsonrpc.StringID("1"), `"1"`},
		{`""`, jsonrpc.StringID(""), `""`},
		{`0`, jsonrpc.IntID(0), `0`},
		{`-0`, jsonrpc.IntID(0), `0`},
		{`-7`, jsonrpc.IntID(-7), `-7`},
		{`9007199254740993`, jsonrpc.IntID(1<<53 + 1), `9007199254740993`},
		{`9223372036854775807`, jsonrpc.IntID(1<<63 - 1), `9223372036854775807`},
		{`-9223372036854775808`, jsonrpc.IntID(-1 << 63), `-9223372036854775808`},
		{`"\u0061\n"`, jsonrpc.StringID("a\n"), `"a\n"`},
	} {
		got, err := jsonrpc.ParseID([]byte(tt.in))
		if err != nil || got != tt.want || string(got.AppendJSON(nil)) != tt.json || got.IsZero() {
			t.Errorf("ParseID(%s) = %v, %v, want %v", tt.in, got, err, tt.want)
		}
	}
	// Beyond int64 the text is kept.
	for _, in := range []string{
		`9223372036854775808`, `-9223372036854775809`, `18446744073709551615`, `18446744073709551616`, `27670116110564327424`,
		`-` + strings.Repeat("9", 40), strings.Repeat("1", 40),
	} {
		got, err := jsonrpc.ParseID([]byte(in))
		if err != nil || string(got.AppendJSON(nil)) != in || got == jsonrpc.StringID(in) {
			t.Errorf("ParseID(%s) = %v, %v", in, got, err)
		}
	}
	for _, in := range []string{
		`null`, `true`, `{}`, `[1]`, `1.0`, `1.5`, `1e3`, `1E3`, `-1e-3`, `01`, `-`, `-01`, `+1`, ``, `"a`, `"\ud800"`, `1x`, ` 1`, `1 `,
		strings.Repeat("1", 41), "1" + strings.Repeat("0", 1<<20),
	} {
		if got, err := jsonrpc.ParseID([]byte(in)); err == nil {
			t.Errorf("ParseID(%.50s) = %v, want an error", in, got)
		} else if len(err.Error()) > 200 {
			t.Errorf("ParseID(%.50s): text of the error has %d bytes", in, len(err.Error()))
		}
	}
}

func TestIDsDiffer(t *testing.T) {
	ids := []jsonrpc.ID{{}, jsonrpc.IntID(0), jsonrpc.IntID(1), jsonrpc.StringID(""), jsonrpc.StringID("1"), jsonrpc.StringID("0"), jsonrpc.StringID("null")}
	seen := map[jsonrpc.ID]bool{}
	for _, id := range ids {
		if seen[id] {
			t.Errorf("%v equals an earlier id", id)
		}
		seen[id] = true
	}
}

func TestIDString(t *testing.T) {
	for _, tt := range []struct {
		id   jsonrpc.ID
		want string
	}{
		{jsonrpc.IntID(-3), `-3`}, {jsonrpc.StringID("-3"), `"-3"`}, {jsonrpc.ID{}, `null`},
		{jsonrpc.StringID("a\x1b[31m"), `"a\x1b[31m"`},
		{jsonrpc.StringID(strings.Repeat("x", 65)), `"` + strings.Repeat("x", 64) + `…"`},
	} {
		if got := tt.id.String(); got != tt.want {
			t.Errorf("String() = %s, want %s", got, tt.want)
		}
	}
}

func TestIDInStructs(t *testing.T) {
	type cancelled struct {
		RequestID jsonrpc.ID `json:"requestId,omitzero"`
	}
	for _, in := range []string{`{}`, `{"requestId":"x"}`, `{"requestId":9007199254740993}`} {
		var v, w cancelled
		if err := jsonx.Unmarshal([]byte(in), &v); err != nil {
			t.Fatal(err)
		}
		if out, err := jsonx.Marshal(v); err != nil || string(out) != in {
			t.Errorf("%s became %s, %v", in, out, err)
		}
		if err := json.Unmarshal([]byte(in), &w); err != nil || v != w {
			t.Errorf("encoding/json reads %s as %v, %v", in, w, err)
		}
	}
	var v cancelled
	if err := jsonx.Unmarshal([]byte(`{"requestId":1.5}`), &v); err == nil {
		t.Errorf("1.5 was read as %v", v.RequestID)
	}
	if err := jsonx.Unmarshal([]byte(`{"requestId":null}`), &v); err != nil || !v.RequestID.IsZero() {
		t.Errorf("null was read as %v, %v", v.RequestID, err)
	}
}

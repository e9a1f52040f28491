package trace

import (
	"strings"
	"testing"
)

func TestCauseIsWrittenAndRead(t *testing.T) {
	for cause, want := range map[Cause]string{
		{Conn: "http-4", ID: "7"}:               `"for":{"conn":"http-4","id":7}`,
		{Conn: "http-4", ID: `"a"`}:             `"for":{"conn":"http-4","id":"a"}`,
		{Conn: "http-4"}:                        `"for":{"conn":"http-4"}`,
		{Conn: `"`, ID: "18446744073709551616"}: `"for":{"conn":"\"","id":18446744073709551616}`,
	} {
		line := Frame{Dir: In, Conn: "c", For: cause, Msg: []byte("{}")}.Append(nil)
		if !strings.Contains(string(line), want) {
			t.Errorf("%v is written as %s, want %s", cause, line, want)
		}
		var f Frame
		if err := f.UnmarshalJSON(line); err != nil || f.For != cause {
			t.Errorf("%s is read as %v (%v), want %v", line, f.For, err, cause)
		}
	}
	// A text that is not an id is left out, so that the line stays JSON.
	for _, id := range []string{"{}", "x", "1,2", "null", "true", `"`} {
		line := Frame{Dir: In, For: Cause{"c", id}, Msg: []byte("{}")}.Append(nil)
		if !strings.Contains(string(line), `"for":{"conn":"c"},`) {
			t.Errorf("the id %s is written: %s", id, line)
		}
	}
}

func TestBadCause(t *testing.T) {
	for in, want := range map[string]string{
		`7`:                         "not a JSON object",
		`{"conn":7}`:                "not a string",
		`{"conn":"c","id":null}`:    "not the id of a request",
		`{"conn":"c","id":[1]}`:     "not the id of a request",
		`{"conn":"c","conn":"d"}`:   "twice",
		`{"conn":"c","id":1,"x":2}`: "",
	} {
		var f Frame
		err := f.UnmarshalJSON([]byte(`{"dir":"in","for":` + in + `,"msg":{}}`))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `"for"`)) {
			t.Errorf("%s: %v, want an error with %q", in, err, want)
		}
	}
}

// TestRedactedCause: a cause is kept, except a secret that the client chose as an id.
func TestRedactedCause(t *testing.T) {
	r := NewRedactor(&RedactorOptions{Values: []string{"hunter2hunter2"}})
	for id, want := range map[string]string{"7": "7", `"a"`: `"a"`, `"hunter2hunter2"`: `"[redacted]"`} {
		if got := r.Frame(Frame{Dir: In, For: Cause{"c", id}}).For; got != (Cause{"c", want}) {
			t.Errorf("the id %s is redacted to %v, want %s", id, got, want)
		}
	}
}

package hop

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A list with the id of this process, or a long one, is a loop, in _meta and in the header (trap
// 1).
func TestCheck(t *testing.T) {
	eight := `["a","b","c","d","e","f","g","h"]`
	for _, tt := range []struct {
		list string
		want error
	}{
		{``, nil},
		{`[]`, nil},
		{`["other"]`, nil},
		{`["other","` + Self + `"]`, ErrLoop},
		{`["` + Self + `","b","c","d","e","f","g","h","i"]`, ErrLoop},
		{eight, nil},
		{strings.Replace(eight, `]`, `,"i"]`, 1), ErrFar},
		{`"` + Self + `"`, nil},
		{`{"a":1}`, nil},
	} {
		if err := Check(json.RawMessage(tt.list), Self); !errors.Is(err, tt.want) {
			t.Errorf("Check(%s) = %v, want %v", tt.list, err, tt.want)
		}
		if !strings.HasPrefix(tt.list, "[") {
			continue
		}
		h := http.Header{}
		if v := HeaderOf(json.RawMessage(tt.list)); v != "" {
			h.Set(Header, v)
		}
		if err := CheckHeader(h); !errors.Is(err, tt.want) {
			t.Errorf("CheckHeader(%q) = %v, want %v", h.Get(Header), err, tt.want)
		}
	}
}

func TestAppend(t *testing.T) {
	for list, want := range map[string]string{
		``:                                    `["SELF"]`,
		`[]`:                                  `["SELF"]`,
		`["a"]`:                               `["a","SELF"]`,
		`[ "a" , 7, {}]`:                      `["a","SELF"]`,
		`"a"`:                                 `["SELF"]`,
		`["` + strings.Repeat("x", 65) + `"]`: `["SELF"]`,
	} {
		got := Append(json.RawMessage(list), Self)
		if want = strings.ReplaceAll(want, "SELF", Self); string(got) != want {
			t.Errorf("Append(%s) = %s, want %s", list, got, want)
		}
		if !json.Valid(got) {
			t.Errorf("Append(%s) = %s, which is no JSON", list, got)
		}
	}
	if got := HeaderOf(json.RawMessage(`["a","b c","d\r\ne","f"]`)); got != "a, f" {
		t.Errorf("HeaderOf = %q, want the ids that may stand in a header", got)
	}
}

func TestRefuse(t *testing.T) {
	srv := Refuse(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for value, want := range map[string]int{"": 200, "other": 200, "other, " + Self: http.StatusLoopDetected} {
		r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
		if value != "" {
			r.Header.Set(Header, value)
		}
		w := httptest.NewRecorder()
		if srv.ServeHTTP(w, r); w.Code != want {
			t.Errorf("%s: %q is answered %d, want %d", Header, value, w.Code, want)
		}
	}
}

package retryafter_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/internal/retryafter"
)

func TestHeader(t *testing.T) {
	for _, tt := range []struct {
		value string
		want  time.Duration
		ok    bool
	}{
		{"3", 3 * time.Second, true}, {" 0 ", 0, true}, {"999999999", 24 * time.Hour, true},
		{"Mon, 01 Jan 2001 00:00:00 GMT", 0, true}, {"Fri, 01 Jan 2100 00:00:00 GMT", 24 * time.Hour, true},
		{"", 0, false}, {"-1", 0, false}, {"1.5", 0, false}, {"soon", 0, false}, {"99999999999999999999", 0, false},
	} {
		if got, ok := retryafter.Header(http.Header{"Retry-After": {tt.value}}); got != tt.want || ok != tt.ok {
			t.Errorf("Header(%q) = %v, %t, want %v, %t", tt.value, got, ok, tt.want, tt.ok)
		}
	}
}

func TestData(t *testing.T) {
	for _, tt := range []struct {
		data string
		want time.Duration
		ok   bool
	}{
		{`{"retryAfter":1.5}`, 1500 * time.Millisecond, true}, {`{"retryAfter":0}`, 0, true}, {`{"retryAfter":1e9}`, 24 * time.Hour, true},
		{``, 0, false}, {`{}`, 0, false}, {`[]`, 0, false}, {`{"retryAfter":-1}`, 0, false}, {`{"retryAfter":"1"}`, 0, false}, {`{"retryAfter":null}`, 0, false},
	} {
		if got, ok := retryafter.Data(json.RawMessage(tt.data)); got != tt.want || ok != tt.ok {
			t.Errorf("Data(%s) = %v, %t, want %v, %t", tt.data, got, ok, tt.want, tt.ok)
		}
	}
}

package sqlite

import (
	"encoding/json"
	"math"
	"testing"
	"time"
)

func TestCell(t *testing.T) {
	tests := []struct {
		name string
		in   any
		want string
	}{
		{"null", nil, `null`},
		{"empty text", "", `""`},
		{"empty blob", []byte(nil), `{"blob":""}`},
		{"blob", []byte{0, 1, 2}, `{"blob":"AAEC"}`},
		{"integer", int64(-7), `-7`},
		{"largest exact integer", int64(9007199254740991), `9007199254740991`},
		{"first integer that doubles lose", int64(9007199254740993), `{"integer":"9007199254740993"}`},
		{"least integer", int64(math.MinInt64), `{"integer":"-9223372036854775808"}`},
		{"real without fraction", 1.0, `1.0`},
		{"real", 0.1, `0.1`},
		{"small real", 1e-300, `1e-300`},
		{"large real", 1e300, `1e+300`},
		{"infinite", math.Inf(-1), `{"real":"-Infinity"}`},
		{"text with quotes", "a\"b\u2028<", "\"a\\\"b\\u2028\\u003c\""},
		{"text that is no UTF-8", "\xff", `{"text_base64":"/w=="}`},
		{"date", time.Date(2026, 7, 28, 0, 0, 0, 0, time.UTC), `"2026-07-28"`},
		{"time", time.Date(2026, 7, 28, 9, 5, 0, 250e6, time.UTC), `"2026-07-28 09:05:00.25"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := cell(tt.in)
			if string(got) != tt.want || !json.Valid(got) {
				t.Errorf("cell(%#v) = %s, want %s", tt.in, got, tt.want)
			}
		})
	}
}

func TestBind(t *testing.T) {
	got, err := bind([]any{"a", true, nil, json.Number("9007199254740993"), json.Number("1.5"), json.Number("2e0")})
	if err != nil {
		t.Fatal(err)
	}
	want := []any{"a", true, nil, int64(9007199254740993), 1.5, 2.0}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("param %d = %#v, want %#v", i, got[i], want[i])
		}
	}
	for _, bad := range []any{json.Number("9223372036854775808"), json.Number("1e999"), []any{}, map[string]any{}} {
		if got, err := bind([]any{bad}); err == nil {
			t.Errorf("bind(%v) = %v, want an error", bad, got)
		}
	}
}

package sqlite

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/patchbay-dev/patchbay/internal/text"
)

// maxExact bounds the integers that every JSON decoder keeps exact.
const maxExact = 1<<53 - 1

// bind converts the JSON values of params for the driver.
func bind(params []any) ([]any, error) {
	out := make([]any, len(params))
	for i, p := range params {
		switch p := p.(type) {
		case nil, string, bool:
			out[i] = p
		case json.Number:
			v, err := number(p.String())
			if err != nil {
				return nil, fmt.Errorf("params[%d]: %w", i, err)
			}
			out[i] = v
		default:
			return nil, fmt.Errorf("params[%d] is a list or an object; pass a string, number, boolean or null, for instance the JSON as a string", i)
		}
	}
	return out, nil
}

// number reads a JSON number as SQLite reads a literal: an integer unless it has a
// fraction or an exponent.
func number(literal string) (any, error) {
	if !strings.ContainsAny(literal, ".eE") {
		n, err := strconv.ParseInt(literal, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s is over 64 bits; pass it as a string", text.Short(literal))
		}
		return n, nil
	}
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil {
		return nil, fmt.Errorf("%s is out of the range of a number; pass it as a string", text.Short(literal))
	}
	return f, nil
}

// cell is the JSON of one value as the driver returns it. The package comment
// lists the forms.
func cell(v any) json.RawMessage {
	switch v := v.(type) {
	case nil:
		return json.RawMessage("null")
	case int64:
		if v > maxExact || v < -maxExact {
			return tagged("integer", strconv.FormatInt(v, 10))
		}
		return strconv.AppendInt(nil, v, 10)
	case float64:
		return float(v)
	case bool:
		return strconv.AppendBool(nil, v)
	case []byte:
		return tagged("blob", base64.StdEncoding.EncodeToString(v))
	case time.Time:
		return textCell(timeText(v))
	case string:
		return textCell(v)
	}
	return textCell(fmt.Sprint(v))
}

func textCell(s string) json.RawMessage {
	if !utf8.ValidString(s) {
		return tagged("text_base64", base64.StdEncoding.EncodeToString([]byte(s)))
	}
	b, _ := json.Marshal(s) // a valid string always has a JSON form
	return b
}

// tagged is an object that names the kind of its value. The value is plain ASCII.
func tagged(kind, value string) json.RawMessage {
	return json.RawMessage(`{"` + kind + `":"` + value + `"}`)
}

// float keeps 1.0 distinct from 1, and encodes values that JSON lacks.
func float(f float64) json.RawMessage {
	switch {
	case math.IsInf(f, 1):
		return tagged("real", "Infinity")
	case math.IsInf(f, -1):
		return tagged("real", "-Infinity")
	}
	format := byte('g')
	if a := math.Abs(f); a == 0 || a >= 1e-6 && a < 1e21 {
		format = 'f'
	}
	b := strconv.AppendFloat(nil, f, format, -1, 64)
	if !strings.ContainsAny(string(b), ".e") {
		b = append(b, ".0"...)
	}
	return b
}

// timeText writes a time as SQLite's own functions do. The driver converts the text
// of columns declared DATE and the like to times; only RETURNING returns them (see
// rawTimes).
func timeText(t time.Time) string {
	layout := "2006-01-02 15:04:05.999999999"
	if t.Hour() == 0 && t.Minute() == 0 && t.Second() == 0 && t.Nanosecond() == 0 {
		layout = time.DateOnly
	}
	if _, offset := t.Zone(); offset != 0 {
		layout = "2006-01-02 15:04:05.999999999-07:00"
	}
	return t.Format(layout)
}

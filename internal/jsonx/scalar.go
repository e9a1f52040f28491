package jsonx

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Scalars for which the codec has no form, or a form that differs from the one in schemas.

var marshalers = json.JoinMarshalers(
	json.MarshalToFunc(func(e *jsontext.Encoder, d time.Duration) error {
		return e.WriteToken(jsontext.String(d.String()))
	}),
	json.MarshalToFunc(func(e *jsontext.Encoder, n stdjson.Number) error {
		if n == "" { // as in encoding/json
			n = "0"
		}
		raw := []byte(n)
		if end, err := scanNumber(raw, 0); err != nil || end != len(raw) {
			return fmt.Errorf("%.40q is not a number", string(n))
		}
		return e.WriteValue(raw)
	}),
)

var unmarshalers = json.JoinUnmarshalers(
	json.UnmarshalFromFunc(func(d *jsontext.Decoder, p *time.Duration) error {
		switch kind := d.PeekKind(); kind {
		case '"':
			t, err := d.ReadToken()
			if err != nil {
				return err
			}
			if *p, err = time.ParseDuration(t.String()); err != nil {
				return fmt.Errorf("want a duration such as 1m30s, got %.40q", t.String())
			}
			return nil
		case 'n':
			*p = 0
			return d.SkipValue()
		default:
			return mismatch(d, kind, "a string")
		}
	}),
	json.UnmarshalFromFunc(func(d *jsontext.Decoder, p *stdjson.Number) error {
		switch kind := d.PeekKind(); kind {
		case '0':
			raw, err := d.ReadValue()
			*p = stdjson.Number(raw)
			return err
		case 'n':
			*p = ""
			return d.SkipValue()
		default:
			return mismatch(d, kind, "a number")
		}
	}),
)

// mismatch skips a value of the wrong kind and returns the error for it.
func mismatch(d *jsontext.Decoder, kind jsontext.Kind, want string) error {
	if err := d.SkipValue(); err != nil {
		return err
	}
	return errors.New("want " + want + ", got " + gotOf(kind))
}

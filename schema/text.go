package schema

import (
	"encoding"
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"
)

// durationPattern is the pattern in the schema of a time.Duration. It matches the output of
// time.Duration.String and similar texts.
const durationPattern = `^-?([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`

var durationRE = regexp.MustCompile(durationPattern)

// texty reads a JSON string into a value that is not a Go string.
func (d *decoder) texty(n *node, r *rules, v reflect.Value, c byte) bool {
	if c != '"' {
		return d.mismatch("must be a string")
	}
	raw, ok := d.text()
	if !ok {
		return false
	}
	if r != nil {
		if problem := r.ofString(string(raw)); problem != "" {
			d.fault(problem)
			return true
		}
	}
	switch n.kind {
	case kindTime:
		var t time.Time
		if err := t.UnmarshalText(raw); err != nil {
			d.fault("must be a time such as 2026-07-28T15:04:05Z, got " + quote(string(raw)))
			return true
		}
		v.Set(reflect.ValueOf(t))
	case kindDuration:
		t, err := time.ParseDuration(string(raw))
		if err != nil || !durationRE.Match(raw) {
			d.fault("must be a duration such as 1m30s, got " + quote(string(raw)))
			return true
		}
		v.SetInt(int64(t))
	case kindBytes:
		d.bytes(n, v, raw)
	default: // kindText
		if n.out {
			return true
		}
		err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText(raw)
		if err != nil {
			d.fault("is not valid: " + excerpt(err.Error()))
		}
	}
	return true
}

func (d *decoder) bytes(n *node, v reflect.Value, raw []byte) {
	b, err := decodeBase64(string(raw))
	switch {
	case err != nil:
		d.fault("must be base64, got " + quote(string(raw)))
	case n.bits < 0:
		v.SetBytes(b)
	case len(b) != n.bits:
		d.fault(fmt.Sprintf("must be base64 of exactly %d bytes, got %d", n.bits, len(b)))
	default:
		reflect.Copy(v, reflect.ValueOf(b))
	}
}

// decodeBase64 decodes standard base64 with padding. Unlike encoding/base64 it refuses line
// breaks.
func decodeBase64(s string) ([]byte, error) {
	if strings.ContainsAny(s, "\r\n") {
		return nil, errors.New("line break in base64")
	}
	return base64.StdEncoding.Strict().DecodeString(s)
}

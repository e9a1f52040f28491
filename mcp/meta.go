package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// WithMeta adds members to the _meta of a request, for instance a trace context:
//
//	mcp.WithMeta(mcp.Meta{"traceparent": json.RawMessage(`"00-0af7…-b7ad…-01"`)})
//
// A handler reads them as [Call.Meta]; a [Session] that forwards the request passes them on. The
// call fails before anything is sent if a name is not a valid _meta name, if a value is not valid
// JSON, or if traceparent, tracestate or baggage do not have the W3C form.
//
// Specification: 2026-07-28, basic/index, _meta.
func WithMeta(m Meta) CallOption { return func(o *callOptions) { o.meta = m } }

// with returns params with m in their _meta.
func (m Meta) with(params json.RawMessage) (json.RawMessage, error) {
	if len(m) == 0 {
		return params, nil
	}
	meta, ok := jsonx.Lookup(params, "_meta")
	if !ok {
		meta = json.RawMessage(`{}`)
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if err := checkMeta(name, m[name]); err != nil {
			return nil, fmt.Errorf("_meta %q: %w", text.Short(name), err)
		}
		meta = jsonx.With(nil, meta, name, m[name])
	}
	return jsonx.With(nil, params, "_meta", meta), nil
}

func checkMeta(name string, value json.RawMessage) error {
	if err := jsonx.Valid(value, 128); err != nil {
		return fmt.Errorf("the value is not JSON: %w", err)
	}
	var check func(string) bool
	switch name {
	case "traceparent":
		check = isTraceparent
	case "tracestate":
		check = isTracestate
	case "baggage":
		check = isBaggage
	case "progressToken":
		return fmt.Errorf("the session sets it; use OnProgress")
	default:
		if !metaName(name) {
			return fmt.Errorf("not a name of _meta; use prefix/name, such as com.example/audit")
		}
		return nil
	}
	if s, err := jsonx.Unquote(value); err != nil || !check(s) {
		return fmt.Errorf("the value does not have the form that the W3C defines: %s", text.Short(string(value)))
	}
	return nil
}

// metaName reports whether s follows the rules for keys of _meta: an optional prefix, then a name,
// which may be empty. The prefix is one or more labels, joined by dots, and a slash (META-26-002,
// -003, -005).
func metaName(s string) bool {
	prefix, name, prefixed := strings.Cut(s, "/")
	if !prefixed {
		prefix, name = "", s
	}
	if prefixed {
		for label := range strings.SplitSeq(prefix, ".") {
			if !word(label, "-") || !letter(label[0]) {
				return false
			}
		}
	}
	return name == "" || word(name, "-_.")
}

// isTraceparent checks W3C Trace Context, traceparent: version, trace, parent and flags in
// lower-case hex. Later versions may append more.
func isTraceparent(s string) bool {
	if len(s) < 55 || s[2] != '-' || s[35] != '-' || s[52] != '-' {
		return false
	}
	version, trace, parent, flags := s[:2], s[3:35], s[36:52], s[53:55]
	if version == "00" && len(s) > 55 || len(s) > 55 && s[55] != '-' {
		return false
	}
	return hex(version) && version != "ff" && hex(trace) && strings.Trim(trace, "0") != "" &&
		hex(parent) && strings.Trim(parent, "0") != "" && hex(flags)
}

func hex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

// isTracestate checks W3C Trace Context, tracestate: at most 32 members key=value.
func isTracestate(s string) bool {
	n := 0
	for member := range strings.SplitSeq(s, ",") {
		member = strings.Trim(member, " \t")
		if member == "" {
			continue
		}
		key, value, ok := strings.Cut(member, "=")
		if n++; !ok || n > 32 || len(key) == 0 || len(key) > 256 || len(value) == 0 || len(value) > 256 {
			return false
		}
		if strings.Trim(key, "abcdefghijklmnopqrstuvwxyz0123456789_-*/@") != "" || strings.Count(key, "@") > 1 || strings.IndexByte("_-*/@", key[0]) >= 0 {
			return false
		}
		for i := range len(value) {
			if c := value[i]; c < 0x20 || c > 0x7e || c == '=' {
				return false
			}
		}
	}
	return n > 0
}

// isBaggage checks W3C Baggage: members key=value with properties, of visible ASCII.
func isBaggage(s string) bool {
	if len(s) > 8192 {
		return false
	}
	n := 0
	for member := range strings.SplitSeq(s, ",") {
		pair, _, _ := strings.Cut(member, ";")
		key, value, ok := strings.Cut(pair, "=")
		key, value = strings.Trim(key, " \t"), strings.Trim(value, " \t")
		if n++; !ok || n > 180 || !token(key) {
			return false
		}
		for i := range len(value) {
			if c := value[i]; c <= 0x20 || c > 0x7e || strings.IndexByte("\",;\\", c) >= 0 {
				return false
			}
		}
	}
	return true
}

// token reports whether s is a token of HTTP (RFC 9110, section 5.6.2).
func token(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !letter(c) && (c < '0' || c > '9') && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

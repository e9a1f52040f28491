package bridge

import (
	"encoding/json"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/hop"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
)

// appendLegacy appends params with the _meta members of a request before 2026-07-28: the progress
// token and the list of forwarders. Either may be nil.
func appendLegacy(dst []byte, params, token, hops json.RawMessage) []byte {
	meta, ok := jsonx.Lookup(params, "_meta")
	if ok || params[len(params)-1] != '}' {
		if token != nil {
			meta = jsonx.With(nil, meta, "progressToken", token)
		}
		if hops != nil {
			meta = jsonx.With(nil, meta, hop.Meta, hops)
		}
		return jsonx.With(dst, params, "_meta", meta)
	}
	dst = openMeta(dst, params)
	if token != nil {
		dst = append(append(dst, `"progressToken":`...), token...)
	}
	if hops != nil {
		if token != nil {
			dst = append(dst, ',')
		}
		dst = append(append(dst, `"`+hop.Meta+`":`...), hops...)
	}
	return append(dst, `}}`...)
}

// openMeta appends params, which end with '}' and have no _meta, up to the first member of a new
// _meta.
func openMeta(dst []byte, params json.RawMessage) []byte {
	dst = append(dst, params[:len(params)-1]...)
	if jsonx.KindOf(params[1:]) == '"' {
		dst = append(dst, ',')
	}
	return append(dst, `"_meta":{`...)
}

// Envelope describes the client in a request of 2026-07-28.
type Envelope struct {
	Self, Caps json.RawMessage // Implementation, nil for that of the Remote; capabilities

	level string          // of log messages, empty for none
	token json.RawMessage // of progress, nil for none
	hops  json.RawMessage // the forwarders, nil for none
}

// ModernParams wraps params in the Envelope of 2026-07-28: the client, its capabilities, and the
// revision.
func (r *Remote) ModernParams(params json.RawMessage, e Envelope) json.RawMessage {
	return r.appendModern(nil, params, e)
}

// appendModern appends the result of ModernParams.
func (r *Remote) appendModern(dst []byte, params json.RawMessage, e Envelope) []byte {
	switch {
	case !r.Local:
	case e.token == nil && e.hops == nil:
		return append(dst, params...)
	default: // the rest is known of the caller
		return appendLegacy(dst, params, e.token, e.hops)
	}
	if e.Self == nil {
		e.Self = r.Self
	}
	meta, ok := jsonx.Lookup(params, "_meta")
	if !ok && params[len(params)-1] == '}' {
		return r.appendEnvelope(openMeta(dst, params), e)
	}
	own := make([]byte, 0, len(meta)+len(e.Self)+len(e.Caps)+len(e.hops)+envelopeRoom)
	own = append(own, '{')
	for name, value := range jsonx.Members(meta) {
		if !e.has(name) {
			own = append(append(jsonx.AppendString(own, string(name)), ':'), value...)
			own = append(own, ',')
		}
	}
	own = r.appendEnvelope(own, e)
	return jsonx.With(dst, params, "_meta", own[:len(own)-1])
}

// envelopeRoom is usually enough for what is not in the fields of an Envelope.
const envelopeRoom = 256

// has reports whether the envelope has a member of _meta.
func (e *Envelope) has(name []byte) bool {
	switch string(name) {
	case engine.MetaVersion, engine.MetaClientInfo, engine.MetaCapabilities:
		return true
	case engine.MetaLogLevel:
		return e.level != ""
	case "progressToken":
		return e.token != nil
	case hop.Meta:
		return e.hops != nil
	}
	return false
}

// appendEnvelope appends the members of an envelope to a _meta that has begun, and ends it and the params.
func (r *Remote) appendEnvelope(out []byte, e Envelope) []byte {
	out = append(out, `"`+engine.MetaVersion+`":"`...)
	out = append(append(out, r.Rev.Name...), `","`+engine.MetaClientInfo+`":`...)
	out = append(append(out, e.Self...), `,"`+engine.MetaCapabilities+`":`...)
	out = append(out, jsonx.OrObject(e.Caps)...)
	if e.level != "" {
		out = jsonx.AppendString(append(out, `,"`+engine.MetaLogLevel+`":`...), e.level)
	}
	if e.token != nil {
		out = append(append(out, `,"progressToken":`...), e.token...)
	}
	if e.hops != nil {
		out = append(append(out, `,"`+hop.Meta+`":`...), e.hops...)
	}
	return append(out, `}}`...)
}

// inner removes, in place, the members of a result that belong to the wire of 2026-07-28.
func inner(raw json.RawMessage) json.RawMessage {
	p := strip{meta: resultMeta, gone: resultGone}
	return p.append(raw[:0], raw)
}

// The members of a result that belong to its hop.
var (
	resultGone = revision.Known{"resultType"}
	resultMeta = revision.Known{engine.MetaServerInfo}
)

// strip removes members from params or a result, in one pass.
type strip struct {
	gone revision.Known // members to remove
	meta revision.Known // members of _meta to remove; _meta itself if it has no others

	method string         // whose params they are; empty for a result
	known  revision.Known // all defined members of the params
	fault  error          // the first member of params that could be taken for another
}

// append appends obj to dst, which may be obj[:0], without the removed members.
func (p *strip) append(dst, obj json.RawMessage) json.RawMessage {
	mixed := false
	dst = jsonx.Filter(dst, obj, func(name []byte, value json.RawMessage) bool {
		if string(name) != "_meta" {
			p.check(name, value)
			return !p.gone.Has(name)
		}
		some, others := false, false
		for name := range jsonx.Members(value) {
			if p.meta.Has(name) {
				some = true
				continue
			}
			others = true
			if p.known != nil && p.fault == nil {
				p.fault = p.meta.Check(name)
			}
		}
		mixed = some && others
		return mixed || !some
	})
	if mixed {
		return WithoutMeta(dst, p.meta...)
	}
	return dst
}

// check records a member that could be taken for another.
func (p *strip) check(name []byte, value json.RawMessage) {
	if p.known == nil || p.fault != nil {
		return
	}
	if p.fault = p.known.Check(name); p.fault == nil {
		p.fault = revision.CheckInside(p.method, name, value)
	}
}

// WithoutMeta removes members of _meta, and _meta itself if it becomes empty.
func WithoutMeta(obj json.RawMessage, names ...string) json.RawMessage {
	meta, ok := jsonx.Lookup(obj, "_meta")
	if !ok {
		return obj
	}
	rest := jsonx.Without(nil, meta, names...)
	switch len(rest) {
	case len(meta):
		return obj
	case len("{}"):
		return jsonx.Without(nil, obj, "_meta")
	}
	return jsonx.With(nil, obj, "_meta", rest)
}

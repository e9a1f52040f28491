package mcp

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/mcp/level"
)

// Call describes the call that a handler serves.
type Call struct {
	Revision     Revision       // that the caller speaks
	Client       Implementation // as the caller names itself
	Capabilities Capabilities   // what the caller can answer
	Principal    string         // who the caller is, or "" if nobody was authenticated
	Header       http.Header    // of the HTTP request of the call; nil on other transports and in a session's context
	Meta         Meta           // the request's _meta
	Round        int            // rounds of questions answered before this run; 0 in the first run

	session *engine.Session
}

// Session returns a context that stands for the session of the caller: it is the same for all calls
// of one session, differs between sessions, and ends with the session. Pass it to forward.Notify
// to send a notification outside of any call, and to [Roots] to ask for the roots, if the client can
// be reached outside of its calls. While [Server.OnSession] runs, the client does not answer yet,
// and Roots fails at once. Session returns nil for a caller without a session, such as every
// caller that speaks 2026-07-28.
func (c *Call) Session() context.Context {
	if c.session == nil {
		return nil
	}
	return c.session.Context()
}

// CallFrom returns the call being served, or nil if ctx belongs to none. Read what a goroutine
// needs before the call is answered: after that, CallFrom returns a Call without Client,
// Capabilities and Meta.
func CallFrom(ctx context.Context) *Call {
	c := engine.From(ctx)
	if c == nil {
		return nil
	}
	out := &Call{
		Revision:  Revision(c.Peer.Revision.Name),
		Principal: c.Peer.Principal,
		Header:    c.Header,
		Round:     c.Round(),
		session:   c.Session(),
	}
	// A description that does not decode counts as not declared, because it is for display and must
	// not fail the call.
	c.While(func() {
		_ = jsonx.Unmarshal(jsonx.OrObject(c.Peer.Info), &out.Client)
		_ = jsonx.Unmarshal(jsonx.OrObject(c.Peer.Capabilities), &out.Capabilities)
		if raw, ok := jsonx.Lookup(c.Params, "_meta"); ok {
			_ = jsonx.Unmarshal(raw, &out.Meta)
		}
	})
	return out
}

// Progress reports progress to the caller. Pass 0 for a total that is unknown. The value of done
// must increase with each report; a report that does not increase it is dropped. Progress does
// nothing if the caller did not ask for progress.
//
// Specification: 2026-07-28, basic/patterns/progress.
func Progress(ctx context.Context, done, total float64, message string) {
	c := engine.From(ctx)
	if c == nil {
		return
	}
	c.Progress(done, total, message)
}

// Log returns a logger that sends its records to the caller, at the level the caller asked for.
// Outside of a call, or if the caller asked for no level, records are dropped. The message and
// attributes of a record become the data of notifications/message; an attribute "logger" names the
// logger. Package level has the levels of the protocol that slog lacks.
//
// Specification: 2026-07-28, server/utilities/logging (deprecated there, but served).
func Log(ctx context.Context) *slog.Logger {
	c := engine.From(ctx)
	if c == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(&logHandler{call: c})
}

// logHandler writes log records as notifications/message on the stream of a call.
type logHandler struct {
	call  *engine.Call
	name  string
	group string
	attrs []slog.Attr
}

func (h *logHandler) Enabled(_ context.Context, l slog.Level) bool {
	return h.call.LogEnabled(level.Name(l))
}

func (h *logHandler) Handle(_ context.Context, r slog.Record) error {
	name := h.name
	data := map[string]any{}
	add := func(prefix string, a slog.Attr) {
		v := a.Value.Resolve()
		if prefix == "" && a.Key == "logger" && v.Kind() == slog.KindString {
			name = v.String()
			return
		}
		data[prefix+a.Key] = logValue(v)
	}
	for _, a := range h.attrs {
		add("", a)
	}
	r.Attrs(func(a slog.Attr) bool { add(h.group, a); return true })
	var payload any = r.Message
	if len(data) > 0 {
		data["message"] = r.Message
		payload = data
	}
	raw, err := jsonx.Marshal(struct {
		Level  string `json:"level"`
		Logger string `json:"logger,omitempty"`
		Data   any    `json:"data"`
	}{level.Name(r.Level), name, payload})
	if err != nil {
		return err
	}
	return h.call.Emit(revision.NoteMessage, raw)
}

func (h *logHandler) WithAttrs(as []slog.Attr) slog.Handler {
	out := *h
	out.attrs = append([]slog.Attr(nil), h.attrs...)
	for _, a := range as {
		if h.group == "" && a.Key == "logger" {
			out.name = a.Value.String()
			continue
		}
		a.Key = h.group + a.Key
		out.attrs = append(out.attrs, a)
	}
	return &out
}

func (h *logHandler) WithGroup(name string) slog.Handler {
	out := *h
	out.group += name + "."
	return &out
}

// logValue makes a value fit for JSON: a value that does not marshal is formatted as text.
func logValue(v slog.Value) any {
	if b, err := jsonx.Marshal(v.Any()); err == nil {
		return json.RawMessage(b)
	}
	return v.String()
}

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/patchbay-dev/patchbay/internal/bridge"
	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// How a client finds out which era a server belongs to (2026-07-28,
// basic/versioning, Backward Compatibility; spec table "Client, all five
// revisions"). Only positive evidence decides: a DiscoverResult or one of the
// modern era's own error codes means modern, an answer to initialize means legacy.

// probeTime bounds the wait for an answer to server/discover on a pipe, where a
// legacy server may stay silent.
const probeTime = 5 * time.Second

// errProbeFatal says that the server ended while it was probed.
var errProbeFatal = errors.New("the server ended on server/discover")

// errNoAnswer says that a server did not answer while a session was being opened.
var errNoAnswer = fmt.Errorf("no answer in time: %w", context.DeadlineExceeded)

// openDuplex opens a session on a pipe.
func (s *Session) openDuplex(ctx context.Context, key string) error {
	modern, legacy, err := s.eras()
	if err != nil {
		return err
	}
	if modern == nil {
		s.how = "initialize, as the client speaks only legacy revisions"
		return s.initialize(ctx, legacy)
	}
	known := s.client.known()
	if how, ok := known.legacy(key); ok && legacy != nil {
		s.how = how
		if err = s.initialize(ctx, legacy); err == nil || s.remote.Ended() || ctx.Err() != nil {
			return err
		}
		known.forget(key) // the assumption failed: ask again
	}
	probe, cancel := context.WithTimeoutCause(ctx, probeTime, errNoAnswer)
	defer cancel()
	verdict, err := s.discover(probe, modern)
	switch {
	case verdict == verdictModern:
		if err == nil {
			known.spoke(key, false)
		}
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case legacy == nil:
		return fmt.Errorf("the server does not speak %s: %w", modern.Name, err)
	case s.remote.Ended():
		return fmt.Errorf("%w: %w", errProbeFatal, err)
	case verdict == verdictOlder:
		legacy = s.older
		s.how = "server/discover named only legacy revisions; initialize"
	default:
		s.how = fmt.Sprintf("initialize, after server/discover failed: %v", publicError(err))
	}
	if err := s.initialize(ctx, legacy); err != nil {
		return err
	}
	known.spoke(key, true)
	return nil
}

// openHTTP opens a session with an HTTP server.
func (s *Session) openHTTP(ctx context.Context, address string) error {
	modern, legacy, err := s.eras()
	if err != nil {
		return err
	}
	key := origin(address)
	known := s.client.known()
	if _, ok := known.legacy(sseKey(address)); ok && legacy != nil {
		if err := s.initializeSSE(ctx, address, legacy); err == nil {
			return nil
		}
		known.forget(sseKey(address)) // ask again
	}
	if modern == nil {
		s.how = "initialize, as the client speaks only legacy revisions"
		return s.initializeHTTP(ctx, address, legacy)
	}
	if how, ok := known.legacy(key); ok && legacy != nil {
		s.how = how
		if err = s.initialize(ctx, legacy); err == nil {
			return nil
		}
		known.forget(key) // the assumption failed: ask again
	}
	verdict, err := s.discover(ctx, modern)
	switch {
	case verdict == verdictModern:
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case verdict == verdictNone:
		return err
	case legacy == nil:
		return fmt.Errorf("the server does not speak %s: %w", modern.Name, err)
	case verdict == verdictOlder:
		legacy = s.older
		s.how = "server/discover named only legacy revisions; initialize"
	default:
		s.how = fmt.Sprintf("initialize, after server/discover failed: %v", publicError(err))
	}
	if err := s.initializeHTTP(ctx, address, legacy); err != nil {
		return err
	}
	if s.remote.HTTP {
		known.spoke(key, true)
	}
	return nil
}

// eras settles what the client declares, and returns the newest revision of each era that
// it speaks.
func (s *Session) eras() (modern, legacy *revision.Table, err error) {
	revs := tables(s.client.Revisions)
	if len(revs) == 0 || (len(s.client.Revisions) > 0 && len(revs) != len(s.client.Revisions)) {
		return nil, nil, fmt.Errorf("Client.Revisions %v: use some of %v", s.client.Revisions, Revisions())
	}
	if err := checkExtensions("Client.Extensions", s.client.Extensions, s.limits.Depth); err != nil {
		return nil, nil, err
	}
	s.remote.Caps, s.remote.Self = s.client.capabilities(), encode(s.client.implementation())
	return revision.Latest(revs, false), revision.Latest(revs, true), nil
}

// verdict is what a probe found.
type verdict int

const (
	verdictNone   verdict = iota // nothing can be said: network, authorization, server fault
	verdictModern                // modern; the session is open if there was no error
	verdictOlder                 // the server names only legacy revisions, the best is s.older
	verdictLegacy                // no sign of the modern era
)

// discover asks a server what it is, in the modern era.
func (s *Session) discover(ctx context.Context, modern *revision.Table) (verdict, error) {
	s.remote.Rev = modern
	raw, err := s.remote.Send(ctx, &engine.Outgoing{Method: revision.MethodDiscover, Params: s.remote.ModernParams(json.RawMessage(`{}`), bridge.Envelope{Caps: s.remote.Caps})})
	if err == nil {
		versions, ok := jsonx.Lookup(raw, "supportedVersions")
		if !ok {
			return verdictLegacy, errors.New("the answer to server/discover has no supportedVersions")
		}
		if v, done := s.choose(versions); done {
			return v, nil
		}
		if s.remote.Rev == nil {
			return verdictModern, s.noCommon(versions)
		}
		info, err := decodeServerInfo(raw)
		if err != nil {
			return verdictModern, err
		}
		s.info.Store(info)
		s.how = "server/discover"
		s.remote.Wire.Negotiated(s.remote.Rev)
		return verdictModern, nil
	}
	var rpc *jsonrpc.Error
	var he *engine.HTTPError
	status := 0
	if errors.As(err, &he) {
		status = he.Status
	}
	if !errors.As(err, &rpc) {
		switch {
		case status >= 400 && status < 500 && status != http.StatusUnauthorized && status != http.StatusForbidden &&
			status != http.StatusRequestTimeout && status != http.StatusTooManyRequests:
			return verdictLegacy, err
		case errors.Is(err, errNoAnswer):
			return verdictLegacy, err
		}
		return verdictNone, err
	}
	if _, later := bridge.RetryAfter(err); later || status == http.StatusUnauthorized || status == http.StatusForbidden ||
		status == http.StatusRequestTimeout || status == http.StatusTooManyRequests || status >= 500 {
		return verdictNone, err
	}
	switch rpc.Code {
	case CodeUnsupportedVersion, CodeHeaderMismatch, CodeMissingCapability:
		versions, ok := jsonx.Lookup(rpc.Data, "supported")
		if !ok {
			return verdictModern, err
		}
		if v, done := s.choose(versions); done {
			return v, nil
		}
		if s.remote.Rev == nil {
			return verdictModern, s.noCommon(versions)
		}
		if s.remote.Rev == modern && s.repeated {
			return verdictModern, err // it names what was asked for, twice
		}
		s.repeated = s.remote.Rev == modern
		return s.discover(ctx, s.remote.Rev)
	}
	return verdictLegacy, err
}

// choose picks the newest revision that both sides speak. If it is a legacy one, choose returns
// true; else it sets s.remote.Rev, to nil if there is none.
func (s *Session) choose(versions json.RawMessage) (verdict, bool) {
	var names []string
	if err := jsonx.Unmarshal(versions, &names); err != nil {
		s.remote.Rev = nil
		return verdictModern, false
	}
	var best *revision.Table
	for _, t := range tables(s.client.Revisions) {
		for _, n := range names {
			if n == t.Name {
				best = t
			}
		}
	}
	if best != nil && best.Sessions {
		s.older = best
		return verdictOlder, true
	}
	s.remote.Rev = best
	return verdictModern, false
}

func (s *Session) noCommon(versions json.RawMessage) error {
	return fmt.Errorf("no revision in common: the server speaks %s, this client %v", text.Short(string(versions)), revision.Names(tables(s.client.Revisions)))
}

// initialize opens a legacy session (2025-11-25, basic/lifecycle).
func (s *Session) initialize(ctx context.Context, t *revision.Table) error {
	if s.remote.Limits.Idle > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, max(s.remote.Limits.Idle, probeTime), errNoAnswer)
		defer cancel()
	}
	info, spoken, err := s.hello(ctx, t)
	if err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	s.remote.Rev = spoken
	s.remote.Wire.Negotiated(s.remote.Rev)
	s.remote.MayAsk(s.remote.Rev)
	return s.opened(ctx, info)
}

// hello sends initialize and returns what the server says of itself and the revision
// that it chose.
func (s *Session) hello(ctx context.Context, t *revision.Table) (*ServerInfo, *revision.Table, error) {
	caps := t.ClientCapabilities(s.remote.Caps)
	if s.client.Roots != nil {
		caps = jsonx.With(nil, caps, "roots", []byte(`{"listChanged":true}`)) // RootsChanged tells
	}
	params := encode(struct {
		Version      string          `json:"protocolVersion"`
		Capabilities json.RawMessage `json:"capabilities"`
		Info         json.RawMessage `json:"clientInfo"`
	}{t.Name, caps, t.Implementation(encode(s.client.implementation()))})
	raw, err := s.remote.Send(ctx, &engine.Outgoing{Method: revision.MethodInitialize, Params: params})
	if err != nil {
		return nil, nil, err
	}
	var res struct {
		Version      string         `json:"protocolVersion"`
		Capabilities Capabilities   `json:"capabilities"`
		Info         Implementation `json:"serverInfo"`
		Instructions string         `json:"instructions"`
	}
	if err := jsonx.Unmarshal(raw, &res); err != nil {
		return nil, nil, fmt.Errorf("the server's answer: %w", err)
	}
	// INIT-25-022: a version that this client does not speak ends the connection.
	spoken := revision.Find(tables(s.client.Revisions), res.Version)
	if spoken == nil || !spoken.Sessions {
		return nil, nil, fmt.Errorf("the server answered with revision %q, this client speaks %v", text.Short(res.Version), revision.Names(tables(s.client.Revisions)))
	}
	return &ServerInfo{Implementation: res.Info, Capabilities: res.Capabilities, Instructions: res.Instructions, Revisions: []Revision{Revision(spoken.Name)}}, spoken, nil
}

// opened ends the opening of a legacy session.
func (s *Session) opened(ctx context.Context, info *ServerInfo) error {
	s.info.Store(info)
	if err := s.remote.Wire.Notify(ctx, revision.NoteInitialized, nil); err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	s.remote.TellLevel(ctx)
	return nil
}

// renew opens the session again after the server has ended it (2025-11-25,
// basic/transports, Session Management). The wire sees to it that nothing else is sent
// meanwhile.
func (s *Session) renew(ctx context.Context) error {
	info, spoken, err := s.hello(ctx, s.remote.Rev)
	if err != nil {
		return err
	}
	if spoken != s.remote.Rev {
		return fmt.Errorf("the server now speaks revision %s, this session was opened in %s", spoken.Name, s.remote.Rev.Name)
	}
	if err := s.opened(ctx, info); err != nil {
		return err
	}
	s.log.InfoContext(ctx, "session reopened", "server", text.Short(info.Name))
	s.outputs.forget()
	s.resubscribe(ctx)
	// Nobody knows what has changed meanwhile.
	for _, k := range []Kind{KindTool, KindPrompt, KindResource} {
		s.feed.changed(k)
	}
	s.changes.all()
	return nil
}

// origin is what an era is remembered by.
func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return u.Scheme + "://" + u.Host + u.Path
}

package mcp

import (
	"context"
	"sync"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/revision"
)

// serverLevel is the least level of log messages that a legacy server was told to send in a
// session. It is that of Client.LogLevel, and becomes the lowest that any caller in front
// has asked for; what is too much for the others is not passed on to them (T-90).
type serverLevel struct {
	mu   sync.Mutex
	name string // as the specification spells it, empty: the server was told none; guarded by mu
}

// lower records a level, unless messages of it are sent already.
func (l *serverLevel) lower(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if name == "" || l.name != "" && slogLevel(l.name) <= slogLevel(name) {
		return false
	}
	l.name = name
	return true
}

func (l *serverLevel) get() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.name
}

// wantLevel sees to it that a legacy server sends the log messages that a caller in front has
// asked for.
func (s *Session) wantLevel(ctx context.Context, call *engine.Call) {
	if !s.rev.Modern && s.level.lower(call.LogLevelSet()) {
		s.tellLevel(ctx)
	}
}

// tellLevel tells a legacy server the level, again if that is another by then.
func (s *Session) tellLevel(ctx context.Context) {
	if !s.Server().Capabilities.Has("logging") {
		return
	}
	for told, name := "", s.level.get(); name != told; told, name = name, s.level.get() {
		params := encode(map[string]string{"level": name})
		if _, err := s.wire.Call(ctx, &engine.Outgoing{Method: revision.MethodSetLevel, Params: params}); err != nil {
			s.log.Warn("the server did not take the log level", "err", err)
			return
		}
	}
}

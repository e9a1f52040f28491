package bridge

import (
	"context"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/revision"
)

// serverLevel is the minimum level of log messages that a legacy server was asked to send in a
// session. It begins as Client.LogLevel and falls to the lowest level that any caller in front has
// asked for. A message below the level of a caller is not passed on to it (T-90).
type serverLevel struct {
	mu   sync.Mutex
	name string // as the specification spells it, empty: none was sent to the server; guarded by mu
}

// lower records a level; false if the server already sends messages of that level.
func (l *serverLevel) lower(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if name == "" || l.name != "" && engine.LevelIndex(l.name) <= engine.LevelIndex(name) {
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

// wantLevel asks a legacy server for the log messages that a caller in front has asked for.
func (r *Remote) wantLevel(ctx context.Context, call *engine.Call) {
	if r.Rev.Sessions && r.level.lower(call.LogLevelSet()) {
		r.TellLevel(ctx)
	}
}

// Bounds of setting the level at a server.
const (
	levelWait = 250 * time.Millisecond // that a call, or the opening of a session, waits for the answer
	levelTime = 30 * time.Second       // for the answer
)

// TellLevel sets the level at a legacy server: that of the client, or the one that callers in front
// have lowered it to, and sets it again if it has changed meanwhile. Some servers that declare
// logging do not answer, so this may go on in the background after the caller stops waiting.
func (r *Remote) TellLevel(ctx context.Context) {
	r.level.lower(r.Owner.LogLevel())
	if !r.has("logging") || r.level.get() == "" {
		return
	}
	told := make(chan struct{})
	telling, cancel := context.WithTimeout(context.WithoutCancel(ctx), levelTime)
	begun := r.Spawn(func() {
		defer close(told)
		defer cancel()
		for last, name := "", r.level.get(); name != last; last, name = name, r.level.get() {
			params := encode(map[string]string{"level": name})
			if _, err := r.Wire.Call(telling, &engine.Outgoing{Method: revision.MethodSetLevel, Params: params}); err != nil {
				r.Log.WarnContext(ctx, "the server did not accept the log level", "err", err)
				return
			}
		}
	})
	if !begun {
		cancel()
		return
	}
	wait := time.NewTimer(levelWait)
	defer wait.Stop()
	select {
	case <-told:
	case <-wait.C:
	case <-ctx.Done():
	}
}

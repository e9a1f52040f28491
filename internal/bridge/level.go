package bridge

import (
	"context"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/revision"
)

// serverLevel is the least level of log messages that a legacy server was told to send in a
// session. It is that of Client.LogLevel, and becomes the lowest that any caller in front
// has asked for; what is too much for the others is not taskOwners on to them (T-90).
type serverLevel struct {
	mu   sync.Mutex
	name string // as the specification spells it, empty: the server was told none; guarded by mu
}

// lower records a level, unless messages of it are sent already.
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

// wantLevel sees to it that a legacy server sends the log messages that a caller in front has
// asked for.
func (r *Remote) wantLevel(ctx context.Context, call *engine.Call) {
	if r.Rev.Sessions && r.level.lower(call.LogLevelSet()) {
		r.TellLevel(ctx)
	}
}

// Bounds of telling a server the level.
const (
	levelWait = 250 * time.Millisecond // that a call, or the opening of a session, waits for the answer
	levelTime = 30 * time.Second       // for the answer
)

// TellLevel tells a legacy server the level of the client, or the one that callers in front have
// lowered it to, again if that is another by then. Not every server
// that declares logging answers, so that this goes on behind whoever waits.
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
				r.Log.Warn("the server did not take the log level", "err", err)
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

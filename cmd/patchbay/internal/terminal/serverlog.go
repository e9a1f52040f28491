package terminal

import (
	"sync"
	"time"
)

// ServerLog holds back what a server says on its standard error: most greet there, which nobody wants to
// see. If the opening takes long, it may say why, so
// that it is shown then.
type ServerLog struct {
	to    *Talk
	mu    sync.Mutex
	state int    // guarded by mu
	held  []byte // at most maxHeld; guarded by mu
	timer *time.Timer
}

const (
	holding = iota
	passing
	dropping
)

const (
	slowOpening = 5 * time.Second
	maxHeld     = 16 << 10
)

// NewServerLog holds back what a server says until it is slow to open, or, with all, nothing.
func NewServerLog(to *Talk, all bool) *ServerLog {
	l := &ServerLog{to: to}
	if all {
		l.state = passing
		return l
	}
	l.timer = time.AfterFunc(slowOpening, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.state == holding {
			l.state = passing
			if len(l.held) > 0 {
				l.to.Write(l.held)
			}
			l.held = nil
		}
	})
	return l
}

func (l *ServerLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.state == passing:
		l.to.Write(p)
	case l.state == holding && len(l.held)+len(p) <= maxHeld:
		l.held = append(l.held, p...)
	}
	return len(p), nil
}

// Opened says that the session is open, or is not going to be.
func (l *ServerLog) Opened() {
	if l.timer == nil {
		return
	}
	l.timer.Stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state, l.held = dropping, nil
}

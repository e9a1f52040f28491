package terminal

import (
	"sync"
	"time"
)

// ServerLog holds back the standard error of a server, because most servers print a greeting there
// that nobody wants to see. If the opening takes long, the output may say why, and is shown.
type ServerLog struct {
	to    *Talk
	mu    sync.Mutex
	state int    // guarded by mu
	held  []byte // at most maxHeld bytes; guarded by mu
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

// NewServerLog holds back the output of a server until its opening is slow. If all is set, it holds
// nothing back.
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

// Opened marks the end of the opening, successful or not.
func (l *ServerLog) Opened() {
	if l.timer == nil {
		return
	}
	l.timer.Stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state, l.held = dropping, nil
}

package chat

import (
	"sync"

	"github.com/patchbay-dev/patchbay/host"
)

// mailbox queues events from other goroutines for the UI. Putting one in never blocks, so a blocked
// terminal does not delay calls.
type mailbox struct {
	wake chan struct{} // capacity 1: there is mail

	mu   sync.Mutex
	mail []any // guarded by mu
}

func newMailbox() *mailbox { return &mailbox{wake: make(chan struct{}, 1)} }

// happened is an event of a conversation.
type happened struct {
	in *talk
	host.Event
}

// put adds an event. One that continues the last one is merged into it.
func (m *mailbox) put(v any) {
	m.mu.Lock()
	if !m.merged(v) {
		m.mail = append(m.mail, v)
	}
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// merged joins pieces of one text, and keeps the last of several progress events. The caller holds
// mu.
func (m *mailbox) merged(v any) bool {
	e, ok := v.(happened)
	if !ok || len(m.mail) == 0 {
		return false
	}
	at := len(m.mail) - 1
	last, ok := m.mail[at].(happened)
	if !ok || last.in != e.in || last.Kind != e.Kind || last.Turn != e.Turn || last.Step != e.Step {
		return false
	}
	switch e.Kind {
	case host.TextCame, host.Thought:
		last.Text += e.Text
		m.mail[at] = last
		return true
	case host.Progress:
		if last.Call.ID == e.Call.ID {
			m.mail[at] = e
			return true
		}
	}
	return false
}

// take removes and returns all events.
func (m *mailbox) take() []any {
	m.mu.Lock()
	defer m.mu.Unlock()
	mail := m.mail
	m.mail = nil
	return mail
}

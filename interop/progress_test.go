package interop

import (
	"fmt"
	"sync"
)

// A progressBoard creates progress tokens for SDKs that leave them to their users.
// Its zero value is ready to use.
type progressBoard struct {
	mu       sync.Mutex
	last     int                      // guarded by mu
	watchers map[string]func(float64) // guarded by mu
}

// watch returns a new token whose reports go to f, also after the call has ended: an SDK may
// deliver the result before the last reports.
func (b *progressBoard) watch(f func(float64)) (token string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last++
	token = fmt.Sprint("steps-", b.last)
	if b.watchers == nil {
		b.watchers = map[string]func(float64){}
	}
	b.watchers[token] = f
	return token
}

// report passes p to the watcher of token.
func (b *progressBoard) report(token string, p float64) {
	b.mu.Lock()
	f := b.watchers[token]
	b.mu.Unlock()
	if f != nil {
		f(p)
	}
}

// logText is the text of a log message's data, which SDKs send as a string or
// as an object with the message in it.
func logText(data any) string {
	if m, ok := data.(map[string]any); ok {
		for _, k := range []string{"message", "msg"} {
			if text, ok := m[k]; ok {
				return fmt.Sprint(text)
			}
		}
	}
	return fmt.Sprint(data)
}

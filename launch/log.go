package launch

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/patchbay-dev/patchbay/trace"
)

// Log keeps the last lines of a server's standard error, over all its connections. It may be used
// by several goroutines.
type Log struct {
	name string
	env  *Env
	each func(line string) // called with each line; may be nil

	journal *Journal // gets each line, without secrets; may be nil

	opened atomic.Int64 // connections to the server so far

	mu   sync.Mutex
	tail []byte      // guarded by mu
	part []byte      // of a line that is not complete; guarded by mu
	keys trace.Lines // state of private keys over the lines for each
}

// NewLog returns the log of a server. If each is not nil, it is called with each line, prefixed
// with the name of the server and without private keys.
func (e *Env) NewLog(name string, each func(line string)) *Log {
	return &Log{name: name, env: e, each: each}
}

// maxSaid bounds, in bytes, the kept standard error of a server, and the length of a line.
const maxSaid = 4 << 10

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tail = append(l.tail, p[max(0, len(p)-maxSaid):]...)
	l.tail = append(l.tail[:0], l.tail[max(0, len(l.tail)-maxSaid):]...)
	if l.each == nil && l.journal == nil {
		return len(p), nil
	}
	l.part = append(l.part, p...)
	for {
		i := slices.Index(l.part, '\n')
		if i < 0 && len(l.part) <= maxSaid {
			return len(p), nil
		}
		if i < 0 {
			i = maxSaid
		}
		line := strings.TrimRight(string(l.part[:i]), "\r\n")
		if l.keys.Secret(line) {
			line = trace.Redacted
		}
		if l.each != nil {
			l.each(l.name + ": " + line)
		}
		if l.journal != nil {
			l.journal.add(false, l.env.clean(line))
		}
		l.part = append(l.part[:0], l.part[min(i+1, len(l.part)):]...)
	}
}

// Last returns the last 8 lines of the log, without secrets.
func (l *Log) Last() string { return l.env.clean(strings.Join(l.lines(8), "\n")) }

// lines returns the last n lines of the log, at most maxSaid bytes.
func (l *Log) lines(n int) []string {
	l.mu.Lock()
	text := strings.TrimSpace(strings.ToValidUTF8(string(l.tail), "�"))
	l.mu.Unlock()
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	return lines[max(0, len(lines)-n):]
}

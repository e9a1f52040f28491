package launch

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/patchbay-dev/patchbay/internal/stray"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/trace"
)

// Log keeps the last lines of a server's standard error, and the first line of its standard output that is not a message,
// over all connections that are open at the same time. It may be used by several goroutines.
type Log struct {
	name string
	env  *Env
	each func(line string) // called with each line; may be nil

	journal *Journal // gets each line, without secrets; may be nil

	opened atomic.Int64 // connections to the server so far

	mu      sync.Mutex
	writers int         // connections that are open, or being opened; guarded by mu
	tail    []byte      // complete lines, without secrets; guarded by mu
	part    []byte      // of a line that is not complete; guarded by mu
	keys    trace.Lines // state of private keys over the lines for each

	strays   int    // lines of standard output that are not messages; guarded by mu
	first    string // the first of them; guarded by mu
	reported bool   // a client has warned of such a line; guarded by mu
}

// NewLog returns the log of a server. If each is not nil, it is called with each line, prefixed
// with the name of the server and without secrets.
func (e *Env) NewLog(name string, each func(line string)) *Log {
	return &Log{name: name, env: e, each: each}
}

// begins counts a connection, until ends is called. Without another one the lines of former processes go: they would be
// taken for the reason why this one ends.
func (l *Log) begins() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.writers == 0 {
		l.tail, l.part, l.keys, l.strays, l.first = nil, nil, trace.Lines{}, 0, ""
	}
	l.writers++
}

func (l *Log) ends() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writers--
}

// maxSaid bounds, in bytes, the kept standard error of a server, and the length of a line.
const maxSaid = 4 << 10

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.part = append(l.part, p...)
	for {
		i := slices.Index(l.part, '\n')
		if i < 0 && len(l.part) <= maxSaid {
			return len(p), nil
		}
		if i < 0 {
			i = maxSaid
		}
		line := l.shown(&l.keys, l.part[:i])
		l.tail = append(append(l.tail, line...), '\n')
		l.tail = append(l.tail[:0], l.tail[max(0, len(l.tail)-maxSaid):]...)
		if l.each != nil {
			l.each(l.name + ": " + line)
		}
		if l.journal != nil {
			l.journal.add(false, line)
		}
		l.part = append(l.part[:0], l.part[min(i+1, len(l.part)):]...)
	}
}

// stray counts a line of standard output that is not a message. The line is known if there was one before, in any connection.
func (l *Log) stray(line []byte) (shown string, known bool) {
	shown = text.Short(l.env.said(text.Clip(line, 1<<10)))
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.strays++; l.strays == 1 {
		l.first = shown
		if l.journal != nil {
			l.journal.Event(fmt.Sprintf("it printed %q; %s", l.first, stray.Advice))
		}
	}
	known, l.reported = l.reported, true
	return shown, known
}

// shown returns a line without secrets.
func (l *Log) shown(keys *trace.Lines, part []byte) string {
	line := strings.TrimRight(string(part), "\r\n")
	if keys.Secret(line) {
		return trace.Redacted
	}
	return l.env.said(line)
}

// Last returns the last 8 lines of the log, without secrets.
func (l *Log) Last() string { return strings.Join(l.lines(8), "\n") }

// lines returns the last n lines of the log without secrets, at most maxSaid bytes.
func (l *Log) lines(n int) []string {
	l.mu.Lock()
	keys := l.keys // the line is not complete
	said := string(l.tail)
	if len(l.part) > 0 {
		said += l.shown(&keys, l.part)
	}
	l.mu.Unlock()
	said = strings.TrimSpace(strings.ToValidUTF8(said[max(0, len(said)-maxSaid):], "�"))
	if said == "" {
		return nil
	}
	lines := strings.Split(said, "\n")
	return lines[max(0, len(lines)-n):]
}

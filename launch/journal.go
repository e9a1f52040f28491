package launch

import (
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	maxJournal      = 1000      // lines that a Journal keeps
	maxJournalBytes = 256 << 10 // of their texts
	maxEvent        = 1 << 10   // bytes of the text of an event
)

// Line is a line of a [Journal].
type Line struct {
	N     int64     `json:"n"` // number of the line, from 1
	Time  time.Time `json:"time"`
	Event bool      `json:"event,omitempty"` // it is about the server; else the server has written it
	Text  string    `json:"text"`
}

// Journal keeps the last lines of a server, over all its connections and restarts: its standard error
// without secrets, and what has happened to it. At most 1000 lines and 256 KiB are kept. It may be used
// by several goroutines.
type Journal struct {
	mu      sync.Mutex
	lines   []Line        // guarded by mu
	bytes   int           // of their texts; guarded by mu
	n       int64         // number of the last line; guarded by mu
	changed chan struct{} // closed at the next line; nil: nobody waits; guarded by mu
}

// Event adds a line about the server.
func (j *Journal) Event(text string) {
	if len(text) > maxEvent {
		text = strings.ToValidUTF8(text[:maxEvent], "") + "…"
	}
	for line := range strings.Lines(text) {
		j.add(true, strings.TrimRight(line, "\r\n"))
	}
}

func (j *Journal) add(event bool, text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.n++
	j.lines = append(j.lines, Line{j.n, time.Now(), event, strings.ToValidUTF8(text, "�")})
	j.bytes += len(text)
	drop := 0
	for len(j.lines)-drop > maxJournal || j.bytes > maxJournalBytes {
		j.bytes -= len(j.lines[drop].Text)
		drop++
	}
	if drop > 0 {
		j.lines = slices.Delete(j.lines, 0, drop)
	}
	if j.changed != nil {
		close(j.changed)
		j.changed = nil
	}
}

// After returns the lines after number n that are kept, and a channel that is closed when there is
// another one. A reader that is too slow misses lines, which it finds by their numbers.
func (j *Journal) After(n int64) ([]Line, <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.changed == nil {
		j.changed = make(chan struct{})
	}
	at, _ := slices.BinarySearchFunc(j.lines, n+1, func(l Line, n int64) int { return int(l.N - n) })
	return slices.Clone(j.lines[at:]), j.changed
}

// Last returns the last max lines.
func (j *Journal) Last(max int) []Line {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.lines[len(j.lines)-min(max, len(j.lines)):])
}

package audit

import (
	"sync"
	"time"
)

const (
	floodLines   = 20   // of a caller that have a line of their own in floodTime
	floodCallers = 1024 // that are told apart in floodTime; all further ones count as one
	floodTime    = time.Second
)

// floods counts the lines that clients can cause without making a call, such as refused requests,
// so that a client cannot fill the disk. It begins anew each floodTime.
type floods struct {
	mu      sync.Mutex
	callers map[caller]*flood // guarded by mu
	timer   *time.Timer       // ends floodTime; nil: no line has come yet; guarded by mu
}

// caller is a caller as far as it is known, and the kind of its lines.
type caller struct {
	kind   Kind
	id, ip string
}

// flood is the lines of a caller.
type flood struct {
	lines int
	last  Entry // the last one of those that were left out
}

// AddSome adds a line that a client can cause without making a call, such as one about a refused login.
// Each second, the first 20 lines of a kind and a caller (ID of Principal, IP of Client) are written, and
// one more line has the number of further ones in More. It does not wait for the disk.
func (l *Log) AddSome(e Entry) { l.addSome(e) }

// addSome adds a line, or counts it if its caller has had its lines of this second. The last of
// those that are counted is written when the second is over.
func (l *Log) addSome(e Entry) {
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	who := caller{kind: e.Kind}
	if e.Principal != nil {
		who.id = e.Principal.ID
	}
	if e.Client != nil {
		who.ip = e.Client.IP
	}
	if l.floods.counts(who, &e, l.flushFloods) {
		return
	}
	l.Add(e)
}

// counts counts a line. It reports whether that is all that happens to it now.
func (f *floods) counts(who caller, e *Entry, flush func()) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.callers) == 0 {
		f.callers = map[caller]*flood{}
		if f.timer == nil {
			f.timer = time.AfterFunc(floodTime, flush)
		} else {
			f.timer.Reset(floodTime)
		}
	}
	own := f.callers[who]
	if own == nil && len(f.callers) >= floodCallers {
		who = caller{kind: e.Kind}
		own = f.callers[who]
	}
	if own == nil {
		own = new(flood)
		f.callers[who] = own
	}
	if own.lines++; own.lines <= floodLines {
		return false
	}
	own.last = *e
	own.last.clip() // it waits for up to a second
	return true
}

// flushFloods writes the lines about those that were left out.
func (l *Log) flushFloods() {
	f := &l.floods
	f.mu.Lock()
	callers := f.callers
	f.callers = nil
	if f.timer != nil {
		f.timer.Stop()
	}
	f.mu.Unlock()
	for _, own := range callers {
		if n := own.lines - floodLines; n > 0 {
			own.last.More = n - 1
			l.Add(own.last)
		}
	}
}

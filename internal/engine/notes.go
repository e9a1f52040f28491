package engine

import (
	"encoding/json"

	"github.com/patchbay-dev/patchbay/internal/revision"
)

// A Note is a notification of a call that nobody has taken yet.
type Note struct {
	Method string
	Params json.RawMessage
}

// MaxNotes bounds the notes of one call that wait.
const MaxNotes = 4096

// Notes are the notifications of one call that wait to be taken, in order. If there are too
// many the oldest are dropped, but not the newest progress, so that its reader learns how far
// the call is, nor the acknowledgement of a subscription, which has no progress. The zero value
// is empty.
type Notes struct {
	list    []Note // list[at:] wait
	at      int
	pinned  int // one more than the place in list of the note that is not dropped, 0 for none
	dropped int
}

// Put adds a note.
func (q *Notes) Put(n Note) {
	pin := n.Method == revision.NoteProgress || n.Method == revision.NoteAcknowledged
	if len(q.list)-q.at == MaxNotes {
		if q.pinned == q.at+1 && !pin {
			q.list[q.at+1] = q.list[q.at] // the second oldest is dropped
			q.pinned++
		}
		q.list[q.at] = Note{}
		q.at++
		q.dropped++
	}
	if q.at == MaxNotes {
		q.list = q.list[:copy(q.list, q.list[q.at:])]
		q.pinned = max(q.pinned-q.at, 0)
		q.at = 0
	}
	q.list = append(q.list, n)
	if pin {
		q.pinned = len(q.list)
	}
}

// Take returns what waits, and how many notes were dropped before that. The notes are the
// caller's.
func (q *Notes) Take() (list []Note, dropped int) {
	list, dropped = q.list[q.at:], q.dropped
	*q = Notes{}
	return list, dropped
}

package engine

import (
	"encoding/json"

	"github.com/patchbay-dev/patchbay/internal/revision"
)

// A Note is a queued notification of a call.
type Note struct {
	Method string
	Params json.RawMessage
}

// MaxNotes bounds the queued notes of one call.
const MaxNotes = 4096

// Notes is the queue of the notifications of one call. If there are too many, the oldest are
// dropped, except the newest progress and the acknowledgement of a subscription, which has no
// progress. The zero value is empty.
type Notes struct {
	list    []Note // list[at:] is queued
	at      int
	pinned  int // index in list of the note that is not dropped, plus one; 0 for none
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

// Empty reports whether nothing is queued.
func (q *Notes) Empty() bool { return len(q.list) == q.at }

// Take empties the queue. It returns the notes and the number that were dropped. The caller owns
// the notes.
func (q *Notes) Take() (list []Note, dropped int) {
	list, dropped = q.list[q.at:], q.dropped
	*q = Notes{}
	return list, dropped
}

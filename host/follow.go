package host

import (
	"context"
	"fmt"
	"iter"
	"sync"

	"github.com/patchbay-dev/patchbay/host/model"
)

// Events sends a message as Send does, and yields the events of the turn:
//
//	for e, err := range c.Events(ctx, "Two bananas, please.") {
//		if err != nil {
//			return err
//		}
//		if e.Kind == TextCame { // the pieces of the answer; other kinds have other texts
//			fmt.Print(e.Text)
//		}
//	}
//
// The last event is of kind Ended; the error beside it is that of Send. If the turn did not begin, the error comes with
// the zero Event. The turn does not wait for the loop, which may take its time and use the conversation. For a loop that
// is slow, pieces of text are joined, only the last progress of each call is kept, and of more than 1,000 log
// messages the newest are left out, with a note. Leaving the loop cancels the turn, as the end of ctx does, and waits for its end. Each
// use of the sequence is another turn.
func (c *Conversation) Events(ctx context.Context, text string, more ...model.Part) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		ctx, leave := context.WithCancel(ctx)
		q := &backlog{more: make(chan struct{}, 1)}
		over := make(chan struct{})
		var err error
		go func() { // ends with the turn, which ends with ctx
			defer close(over)
			_, err = c.send(ctx, q.put, text, more)
		}()
		defer func() { <-over }()
		defer leave()
		for ended := false; ; {
			select {
			case <-q.more:
			case <-over:
				ended = true
			}
			for _, e := range q.take() {
				if e.Kind == Ended {
					<-over // its error is known then
					yield(e, err)
					return
				}
				if !yield(e, nil) {
					return
				}
			}
			if ended {
				if err != nil {
					yield(Event{}, err)
				}
				return
			}
		}
	}
}

const (
	joinedText = 4 << 10 // bytes up to which pieces of text are joined
	mostLogged = 1000    // log messages that wait
)

// backlog holds the events that a loop has not taken yet. Its size is bounded by that of the turn.
type backlog struct {
	more chan struct{} // capacity 1: there are events

	mu       sync.Mutex
	events   []Event        // guarded by mu
	progress map[string]int // index in events of the last progress of a call; guarded by mu
	logged   int            // log messages in events; guarded by mu
	dropped  int            // log messages that were left out; guarded by mu
}

func (q *backlog) put(e Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := len(q.events)
	switch e.Kind {
	case TextCame, Thought:
		if n > 0 && q.events[n-1].Kind == e.Kind && len(q.events[n-1].Text) < joinedText {
			q.events[n-1].Text += e.Text
			return
		}
	case Progress:
		if at, ok := q.progress[e.Call.ID]; ok {
			q.events[at] = e
			return
		}
		if q.progress == nil {
			q.progress = map[string]int{}
		}
		q.progress[e.Call.ID] = n
	case Logged:
		if q.logged == mostLogged {
			q.dropped++
			return
		}
		q.logged++
	}
	q.events = append(q.events, e)
	select {
	case q.more <- struct{}{}:
	default:
	}
}

func (q *backlog) take() []Event {
	q.mu.Lock()
	defer q.mu.Unlock()
	events := q.events
	if q.dropped > 0 {
		last := events[len(events)-1]
		note := Event{Kind: Noted, Time: last.Time, Turn: last.Turn, Step: last.Step, Text: fmt.Sprintf("%d log messages were left out", q.dropped)}
		events = append(events[:len(events)-1], note, last) // Ended stays last
	}
	q.events, q.progress, q.logged, q.dropped = nil, nil, 0, 0
	return events
}

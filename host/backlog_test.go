package host

import (
	"fmt"
	"strings"
	"testing"
)

// A loop that is slow gets all of the text, the last progress of each call, and a bounded number of log messages.
func TestBacklog(t *testing.T) {
	q := &backlog{more: make(chan struct{}, 1)}
	call := func(id string, done float64) *CallEvent { return &CallEvent{ID: id, Done: done} }
	var want strings.Builder
	for i := range 5000 {
		piece := fmt.Sprint(i, " ")
		want.WriteString(piece)
		q.put(Event{Kind: TextCame, Text: piece})
	}
	for i := range 5000 {
		q.put(Event{Kind: Progress, Call: call("a", float64(i))})
		q.put(Event{Kind: Progress, Call: call("b", float64(i))})
		q.put(Event{Kind: Logged, Call: call("a", 0)})
	}
	q.put(Event{Kind: Ended})
	events := q.take()
	got, kinds := "", map[EventKind]int{}
	for _, e := range events {
		kinds[e.Kind]++
		if e.Kind == TextCame {
			got += e.Text
		}
		if e.Kind == Progress && e.Call.Done != 4999 {
			t.Errorf("the progress of %s is %v, want the last one", e.Call.ID, e.Call.Done)
		}
		if e.Kind == Noted && e.Text != "4000 log messages were left out" {
			t.Errorf("the note is %q", e.Text)
		}
	}
	if got != want.String() || kinds[TextCame] > 10 {
		t.Errorf("%d pieces of text are not the whole text", kinds[TextCame])
	}
	if kinds[Progress] != 2 || kinds[Logged] != mostLogged || kinds[Noted] != 1 || events[len(events)-1].Kind != Ended {
		t.Errorf("the kinds are %v, the last is %s", kinds, events[len(events)-1].Kind)
	}
	if again := q.take(); len(again) > 0 {
		t.Errorf("taken twice: %v", again)
	}
}

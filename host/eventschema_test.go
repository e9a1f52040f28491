package host_test

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/schema"
)

// The schema in docs has the members and kinds of events, no more and no fewer, and the events of
// conversations fit it.
func TestEventSchema(t *testing.T) {
	data, err := os.ReadFile("../docs/events.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	type object struct {
		Properties map[string]struct {
			Enum []string
		}
	}
	var doc struct {
		object
		Defs map[string]object `json:"$defs"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	names := func(of any) (list []string) {
		for i := range reflect.TypeOf(of).NumField() {
			name, _, _ := strings.Cut(reflect.TypeOf(of).Field(i).Tag.Get("json"), ",")
			list = append(list, name)
		}
		slices.Sort(list)
		return list
	}
	for name, in := range map[string]struct {
		schema object
		value  any
	}{"event": {doc.object, host.Event{}}, "call": {doc.Defs["call"], host.CallEvent{}}, "usage": {doc.Defs["usage"], model.Usage{}}} {
		if got, want := slices.Sorted(maps.Keys(in.schema.Properties)), names(in.value); !slices.Equal(got, want) {
			t.Errorf("the schema of an %s has the members %q, want %q", name, got, want)
		}
	}
	kinds := []host.EventKind{host.Asking, host.TextCame, host.Thought, host.Again, host.Answered, host.Called, host.Waiting, host.Started, host.Progress,
		host.Logged, host.Retried, host.Asked, host.Sampled, host.Resulted, host.Noted, host.Summarising, host.Summarised, host.Ended}
	if got := doc.Properties["kind"].Enum; len(got) != len(kinds) {
		t.Errorf("the schema has %d kinds of events, want %d", len(got), len(kinds))
	}
	for _, kind := range kinds {
		if !slices.Contains(doc.Properties["kind"].Enum, string(kind)) {
			t.Errorf("the schema lacks the kind %s", kind)
		}
	}

	fits, err := schema.Compile(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		answers []answer
		kind    string // of the error
	}{
		{[]answer{want("clock_now"), say("noon")}, ""},
		{[]answer{want("clock_tick"), want("clock_tick"), want("clock_tick"), want("clock_none")}, "steps"},
		{[]answer{fail(&model.Error{Kind: model.NoKey, Message: "no"})}, "not_authorized"},
		{[]answer{fail(&model.Error{Kind: model.Malformed, Message: "no"})}, "not_understood"},
		{[]answer{fail(errors.New("no"))}, "other"},
	} {
		d := &diary{}
		h := newHost(t, &host.Host{Model: &talker{answers: tt.answers}, Allow: []string{"*"}, Limits: host.Limits{Steps: 3}}, inMemory("clock", clock()))
		c := h.NewConversation()
		c.OnEvent = d.note
		c.Send(t.Context(), "go")
		c.Summarise(t.Context(), "")
		for _, e := range d.of(kinds...) {
			line, err := json.Marshal(e)
			if err == nil {
				err = fits.Validate(line)
			}
			if err != nil {
				t.Errorf("the event %s: %v", line, err)
			}
			var again host.Event
			if err := json.Unmarshal(line, &again); err != nil || again.Kind != e.Kind || time.Duration(again.Took-e.Took).Abs() > time.Microsecond {
				t.Errorf("the event %s is read as %+v, %v", line, again, err)
			}
		}
		e := d.of(host.Ended)[0]
		timed := e.Took > 0 || e.Took == 0 && runtime.GOOS == "windows" // whose clock may stand still so long
		if e.ErrorKind != tt.kind || e.Conversation != c.ID || !timed || !slices.Contains(append(doc.Properties["error_kind"].Enum, ""), e.ErrorKind) {
			t.Errorf("it ended with %+v, want the kind %q", e, tt.kind)
		}
	}
}

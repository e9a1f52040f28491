package host_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/internal/long"
)

// stepper is a model that makes another call in each step, from the last step on the same one, and keeps nothing.
type stepper struct {
	t       *testing.T
	last    int // step
	summary answer
	at      map[int]func() // called before a step

	step      int
	summaries int
}

func (m *stepper) Info() model.Info { return model.Info{Name: "fake/stepper", Window: 2000} }

func (m *stepper) Generate(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Response, error) {
	paired(m.t, req.Messages)
	text := ""
	for _, msg := range req.Messages {
		text += msg.Text()
	}
	if task := "Count the ticks."; m.last > 0 && !strings.Contains(text, task) || !strings.Contains(text, "with care") {
		m.t.Errorf("step %d is without the task: %.300q", m.step, text)
	}
	if strings.HasSuffix(text, "Write the summary alone.") {
		m.summaries++
		return m.summary(ctx, req, emit)
	}
	if strings.Contains(text, "was lost") {
		m.t.Errorf("step %d: a result is lost", m.step)
	}
	m.step++
	if f := m.at[m.step]; f != nil {
		f()
	}
	switch {
	case req.Choice.Mode == "none":
		return say("There were many.")(ctx, req, emit)
	case m.step >= m.last:
		return want("clock_now {}")(ctx, req, emit)
	}
	return want(fmt.Sprintf(`clock_tick {"for":%q}`, fmt.Sprintf("%d %s", m.step, strings.Repeat("x", 100))))(ctx, req, emit)
}

// A turn that forgets takes no more memory after many steps than after some, whether its summaries are
// written, fail or are off. A loop at its end is still noticed, the conversation goes on, and Undo undoes it.
func TestTurnOfManyStepsIsFlat(t *testing.T) {
	long.WithoutRace(t)
	const some, many = 2100, 3100
	for _, tt := range []struct {
		name    string
		summary answer
		at      int
	}{
		{"summaries", say("Some ticks were counted."), 0},
		{"summaries that fail", fail(&model.Error{Kind: model.Rejected, Message: "no"}), 0},
		{"no summaries", nil, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var c *host.Conversation
			measure := func(live *uint64, entries *int) func() {
				return func() {
					runtime.GC()
					runtime.GC()
					var m runtime.MemStats
					runtime.ReadMemStats(&m)
					*live, *entries = m.HeapAlloc, len(c.Snapshot())
				}
			}
			var before, after uint64
			var few, most int
			m := &stepper{t: t, last: many + 1, summary: tt.summary, at: map[int]func(){some: measure(&before, &few), many: measure(&after, &most)}}
			c = newHost(t, &host.Host{Model: m, Allow: []string{"*"}, Limits: host.Limits{Steps: 2 * many, SummariseAt: tt.at}}, inMemory("clock", looseClock())).NewConversation()
			c.Forget = true
			if r, err := c.Send(t.Context(), "Count the ticks.", model.Part{Text: "with care"}); err != nil || r.Text != "There were many." || r.Early != host.NoProgress {
				t.Fatalf("Send = %+v, %v", r, err)
			}
			t.Logf("%d KB after %d steps, %d KB after %d: %d bytes a step; %d entries, %d; %d summaries", before>>10, some, after>>10, many, (int64(after)-int64(before))/(many-some), few, most, m.summaries)
			if after > before+500<<10 {
				t.Errorf("a turn takes %d bytes after %d steps, and %d after %d", before, some, after, many)
			}
			if most > few+100 {
				t.Errorf("there are %d entries after %d steps, and %d after %d", few, some, most, many)
			}
			m.last = 0
			if r, err := c.Send(t.Context(), "And now?"); err != nil || r.Text != "There were many." || r.Early != host.NoProgress {
				t.Errorf("the next turn: %+v, %v", r, err)
			}
			for _, want := range []string{"And now?", "Count the ticks."} {
				if said, err := c.Undo(t.Context()); err != nil || said != want {
					t.Errorf("Undo = %q, %v, want %q", said, err, want)
				}
			}
			if n := len(c.Entries); n > 0 {
				t.Errorf("%d entries are left", n)
			}
		})
	}
}

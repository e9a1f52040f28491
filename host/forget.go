package host

import (
	"slices"

	"github.com/patchbay-dev/patchbay/host/model"
)

// forgets reports whether the conversation removes entries that it does not need any more.
func (c *Conversation) forgets() bool { return c.Forget && c.Keep == nil }

// forget removes the entries from one index to before another.
func (c *Conversation) forget(from, to int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forgetLocked(from, to)
}

func (c *Conversation) forgetLocked(from, to int) {
	if from >= to {
		return
	}
	c.Entries = slices.Concat(c.Entries[:from], c.Entries[to:]) // its own memory: the rest can be collected
	for _, i := range []*int{&c.left.turns, &c.left.results, &c.left.steps[0], &c.left.steps[1]} {
		*i -= min(max(*i-from, 0), to-from)
	}
}

// forgetSteps removes the steps that requests leave out, but for the first of them and what the last summary
// has beside it.
func (c *Conversation) forgetSteps() {
	if !c.forgets() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	from, to := c.left.steps[0]+1, c.left.steps[1]
	for from < to && c.Entries[from].Role != model.Assistant {
		from++
	}
	for i := len(c.Entries) - 1; i >= from; i-- {
		if c.Entries[i].mark().Summary {
			from = i + 1
		}
	}
	c.forgetLocked(from, to)
}

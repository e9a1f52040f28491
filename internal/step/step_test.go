package step_test

import (
	"context"
	"encoding/json"
	"iter"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/step"
	"github.com/patchbay-dev/patchbay/mcp"
)

type plain struct{ name string }

func (p plain) Handle(context.Context, *mcp.Request) (mcp.Result, error) {
	return mcp.RawResult(`"` + p.name + `"`), nil
}

type foreign struct{ plain }

func (foreign) Foreign() bool { return true }
func (foreign) PassesAll()    {}

type filter struct{ plain }

func (filter) Leaves(context.Context, string, uint64, iter.Seq[json.RawMessage]) string {
	return "some"
}

// A handler handles requests itself and looks like the next one, through several steps too.
func TestLike(t *testing.T) {
	for _, tt := range []struct {
		name                   string
		next                   mcp.Handler
		foreign, passes, leave bool
	}{
		{"a handler", plain{}, false, false, false},
		{"a server behind a gateway", foreign{}, true, true, false},
		{"a policy", filter{}, false, false, true},
		{"a session", new(mcp.Session), true, false, false},
	} {
		h := tt.next
		for range 3 {
			h = step.Like(h, plain{"own"})
			of, _ := h.(interface{ Foreign() bool })
			_, passes := h.(step.Onlooker)
			l, leaves := h.(step.Leaver)
			if of == nil || of.Foreign() != tt.foreign || passes != tt.passes || leaves != tt.leave {
				t.Errorf("%s: foreign %v, passes %t, leaves %t", tt.name, of != nil && of.Foreign(), passes, leaves)
			}
			if leaves && l.Leaves(t.Context(), "", 0, nil) != "some" {
				t.Errorf("%s: Leaves is that of another handler", tt.name)
			}
			if res, err := h.Handle(t.Context(), &mcp.Request{}); err != nil || string(res.JSON()) != `"own"` {
				t.Errorf("%s: %v, %v", tt.name, res, err)
			}
		}
	}
}

package host

import (
	"crypto/sha256"
	"fmt"
	"testing"

	"github.com/patchbay-dev/patchbay/host/model"
)

// A turn remembers a bounded number of its calls. It notices a loop of many of them even then.
func TestRememberedCallsAreBounded(t *testing.T) {
	h := &Host{Limits: Limits{Steps: 100_000}}
	steps := &turn{c: h.NewConversation(), r: &Reply{}, same: map[[sha256.Size]byte]repetition{}}
	step := func(n int) string {
		call := &model.Call{Name: "count", Arguments: fmt.Appendf(nil, `{"n":%d}`, n)}
		return steps.progress([]*model.Call{call}, []model.Part{{Result: &model.Result{Parts: words("done")}}})
	}
	for n := range 10 * mostSame {
		if said := step(n); said != "" {
			t.Fatalf("call %d: %s", n, said)
		}
		if got := len(steps.same) + len(steps.earlier); got > 2*mostSame {
			t.Fatalf("after %d calls it remembers %d", n+1, got)
		}
	}
	const loop = mostSame
	for n := range 4 * loop {
		if step(n % loop); steps.r.Early != "" && n < 3*loop {
			t.Fatalf("a loop of %d calls ended after %d", loop, n+1)
		}
	}
	if steps.r.Early != NoProgress {
		t.Errorf("a loop of %d calls goes on", loop)
	}
}

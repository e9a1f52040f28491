package chat

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Completion of /model has the configured models and those that the server offers, which is asked once a
// minute, and again for another model or after an error.
func TestOfferedModels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, fails := 0, false
		c := &Chat{o: Options{Models: []string{"own"}, Offered: func(context.Context) ([]string, error) {
			asked++
			if fails {
				return nil, errors.New("it is down")
			}
			return []string{fmt.Sprintf("own/%d", asked)}, nil
		}}}
		offered := func(want ...string) {
			t.Helper()
			var got []string
			for _, i := range offerModels(t.Context(), c, nil) {
				got = append(got, i.text)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("offered (-want +got):\n%s", diff)
			}
		}
		offered("own", "own/1")
		offered("own", "own/1")
		time.Sleep(2 * time.Minute)
		offered("own", "own/2")
		c.models.forget()
		fails = true
		offered("own")
		fails = false
		offered("own", "own/4")
		if got := offerModels(t.Context(), c, []string{"own"}); got != nil {
			t.Errorf("after a name, %v is offered", got)
		}
	})
}

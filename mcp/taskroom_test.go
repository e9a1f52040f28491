package mcp_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/store"
)

// tightStore has room for what is small.
type tightStore struct{ brokenTasks }

func (s *tightStore) PutTask(ctx context.Context, r store.Task) error {
	if len(r.Data) > 1<<20 {
		return errors.New("disk full")
	}
	return s.brokenTasks.PutTask(ctx, r)
}

// Results that a store has no room for are held in memory, up to a bound.
func TestResultsThatCannotBeKeptAreBounded(t *testing.T) {
	long.WithoutRace(t)
	synctest.Test(t, func(t *testing.T) {
		s := &mcp.Server{Name: "shop", Version: "1", Tasks: mcp.TaskConfig{Store: &tightStore{}}}
		big := strings.Repeat("x", 12<<20)
		mcp.AddTool(s, mcp.Tool{Name: "big", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskOptional}}, func(context.Context, struct{}) (string, error) {
			return big, nil
		})
		p := newShopper(t, s, mcp.V2026_07_28)
		var first, last string
		for i := range 8 {
			last = p.begin("big", "{}").TaskID
			if i == 0 {
				first = last
			}
			synctest.Wait()
		}
		if got := p.state(first); got.Status != "completed" || len(got.Result) < len(big) {
			t.Errorf("the first is %s with %d bytes", got.Status, len(got.Result))
		}
		if got := p.state(last); got.Status != "failed" || got.Error == nil || !strings.Contains(got.Error.Message, "could not be kept") {
			t.Errorf("the last is %s: %+v", got.Status, got.Error)
		}
		time.Sleep(2 * time.Hour) // they expire
		id := p.begin("big", "{}").TaskID
		synctest.Wait()
		if got := p.state(id); got.Status != "completed" {
			t.Errorf("when there is room again it is %s", got.Status)
		}
	})
}

package gateway_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/metrics"
)

// queued is a gateway whose server has asked carl a question that stays open.
type queued struct {
	g    *gateway.Gateway
	farm *farm
	read func() metrics.Server
	bob  *mcp.Session
	form chan error // the call of carl
}

func newQueued(t *testing.T) *queued {
	q := &queued{g: &gateway.Gateway{Name: "gw"}, farm: &farm{rev: mcp.V2025_11_25, more: work}, form: make(chan error, 1)}
	c := &metrics.Counters{Listed: q.g.Lists}
	q.g.Middleware = c.Around(nil)
	q.read = func() metrics.Server { return c.Read(metrics.Total).Servers[0] }
	run(t, q.g, gateway.Source{Name: "db", Open: q.farm.Open, Share: gateway.Shared})
	front := &mcp.Server{Name: "gw", Version: "1", Handler: q.g}
	carl := mcptest.Connect(t, front, &mcp.Client{Name: "c", Version: "1", Limits: mcp.Limits{CallTimeout: time.Hour}, OnElicit: func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}, mcp.V2025_11_25)
	q.bob = mcptest.Connect(t, front, &mcp.Client{Name: "c", Version: "1", Limits: mcp.Limits{CallTimeout: time.Hour}}, mcp.V2025_11_25)
	synctest.Wait()
	go func() {
		_, err := carl.CallTool(t.Context(), "db_form", nil)
		q.form <- err
	}()
	synctest.Wait()
	return q
}

// waits begins a call of bob that waits for its turn.
func (q *queued) waits(t *testing.T) chan error {
	end := make(chan error, 1)
	go func() {
		_, err := q.bob.CallTool(t.Context(), "db_work", nil)
		end <- err
	}()
	synctest.Wait()
	return end
}

// The status has the first question that a server ever asks, also while no call waits for it.
func TestStatusHasTheFirstQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueued(t)
		time.Sleep(10 * time.Second)
		if s := q.g.Status()[0]; s.Waiting != 0 || s.Question.IsZero() || time.Since(s.Question) != 10*time.Second {
			t.Errorf("before a call waits, the status has %d of them and a question of %v", s.Waiting, s.Question)
		}
		end := q.waits(t)
		if s := q.g.Status()[0]; s.Waiting != 1 || s.Question.IsZero() || !s.Asks {
			t.Errorf("the status has %d waiting calls, a question of %v, asks is %v", s.Waiting, s.Question, s.Asks)
		}
		q.farm.kill(1)
		<-end
		<-q.form
	})
}

// A call that waits for its turn goes to the next process if the one before it has ended.
func TestWaitingCallGoesToTheNextProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueued(t)
		end := q.waits(t)
		q.farm.kill(1)
		if err := <-end; err != nil {
			t.Error("the call that was not sent fails: ", err)
		}
		if err := <-q.form; err == nil || !strings.Contains(err.Error(), "may or may not have run") {
			t.Errorf("the call that was sent = %v, want an error that says that it may have run", err)
		}
	})
}

// A call that has waited for its turn for too long names the question, and is not an error of the server.
func TestWaitForATurnIsNotTheServersError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueued(t)
		err := <-q.waits(t)
		var rpc *mcp.Error
		if !errors.As(err, &rpc) || !strings.Contains(rpc.Message, "not sent") || !strings.Contains(rpc.Message, "a question to another caller has been open for 5m0s") {
			t.Errorf("the call ends with %v, want an error that names the question", err)
		}
		for _, tool := range q.read().Tools {
			if tool.Name == "work" && (tool.Errors != (metrics.Errors{Unsent: 1}) || tool.Upstream.Calls != 0) {
				t.Errorf("errors %+v, and %d calls of the server; want one unsent, none", tool.Errors, tool.Upstream.Calls)
			}
		}
	})
}

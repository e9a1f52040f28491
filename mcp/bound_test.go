package mcp_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// The requests of a session that wait for the result of one task are bounded: the first,
// whose stream is most likely lost, gives way. The others get the result (TASK-25-031).
func TestWaitingForOneResultIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newShopper(t, taskShop(), mcp.V2025_11_25)
		id := p.begin("slow", `{"seconds":30}`).TaskID
		first := p.id + 1
		for range 18 {
			p.ask("tasks/result", `"taskId":"`+id+`"`)
			synctest.Wait()
		}
		for _, id := range []int64{first, first + 1} {
			m := p.answer(id)
			wantError(t, m, jsonrpc.CodeInternal)
			if !strings.Contains(show(&m), "16 later requests") {
				t.Errorf("the first request got %s", show(&m))
			}
		}
		got := map[string]bool{}
		for len(got) < 16 {
			m := p.read()
			if m.Kind() != jsonrpc.KindResponse {
				continue
			}
			if !strings.Contains(string(m.Result), "done") {
				t.Fatalf("got %s", show(&m))
			}
			got[m.ID.String()] = true
		}
	})
}

// The questions to one client that have no answer are bounded.
func TestQuestionsToOneClientAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := make(chan error, 3)
		s := one(func(ctx context.Context, _ struct{}) (string, error) {
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					_, err := mcp.Confirm(ctx, "Sure?")
					failed <- err
				})
			}
			wg.Wait()
			return "done", nil
		})
		s.Limits.Concurrent = 2
		p := rawClient(t, s)
		p.initialize(mcp.V2025_11_25, canElicit)
		p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","arguments":{}}}`)
		if err := <-failed; err == nil || !strings.Contains(err.Error(), "Limits.Concurrent") {
			t.Errorf("the third question = %v", err)
		}
		for range 2 {
			q := p.read()
			p.sendf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"confirm":true}}}`, q.ID.AppendJSON(nil))
			if err := <-failed; err != nil {
				t.Errorf("a question that was answered = %v", err)
			}
		}
		if m := p.answer(1); !strings.Contains(string(m.Result), "done") {
			t.Errorf("got %s", show(&m))
		}
	})
}

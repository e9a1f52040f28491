package taskend

import (
	"fmt"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/internal/outcome"
	"github.com/patchbay-dev/patchbay/mcp"
)

func TestOf(t *testing.T) {
	for _, tt := range []struct {
		state string
		over  bool
		want  string
	}{
		{`{"taskId":"1","status":"working"}`, false, ""},
		{`{"taskId":"1","status":"input_required"}`, false, ""},
		{`{"status":"completed","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:02.5Z","result":{"content":[]}}`, true, `0 0 {"content":[]} 2.5s`},
		{`{"status":"completed","result":{"isError":true}}`, true, `3 0 {"isError":true} 0s`},
		{`{"status":"failed","error":{"code":-32602,"message":"x"}}`, true, `10 -32602  0s`},
		{`{"status":"failed"}`, true, `10 -32603  0s`},
		{`{"status":"cancelled","createdAt":"2026-01-01T00:00:02Z","lastUpdatedAt":"2026-01-01T00:00:00Z"}`, true, `6 0  0s`},
		{`{"status":"completed","createdAt":17,"lastUpdatedAt":{}}`, true, `0 0  0s`},
		{`[]`, false, ""},
		{``, false, ""},
	} {
		e, over := Of(mcp.RawResult(tt.state))
		got := ""
		if over {
			got = fmt.Sprint(e.Cause, " ", e.Code, " ", string(e.Result), " ", e.Took)
		}
		if over != tt.over || got != tt.want {
			t.Errorf("%s: %v, %q, want %q", tt.state, over, got, tt.want)
		}
	}
	if _, over := Of(nil); over || outcome.Tool != 3 || outcome.Server != 10 || outcome.Caller != 6 {
		t.Error("the causes have other numbers, or nil is an end")
	}
}

// The oldest tasks make room, and each is taken once.
func TestPending(t *testing.T) {
	var p Pending[time.Duration]
	if _, ok := p.Take("1"); ok {
		t.Error("an empty one has a task")
	}
	for i := range maxTasks + 2 {
		p.Add(fmt.Sprint(i), time.Duration(i))
	}
	p.Add("5", 77)
	p.Add("", 1)
	for _, tt := range []struct {
		id    string
		about time.Duration
		ok    bool
	}{{"0", 0, false}, {"1", 0, false}, {"2", 2, true}, {"2", 0, false}, {"5", 77, true}, {"5", 0, false}, {"10001", 10001, true}, {"", 0, false}} {
		if about, ok := p.Take(tt.id); about != tt.about || ok != tt.ok {
			t.Errorf("Take(%q) = %v, %v, want %v, %v", tt.id, about, ok, tt.about, tt.ok)
		}
	}
	for i := range maxTasks + 2 {
		p.Take(fmt.Sprint(i))
	}
	if p.oldest != nil || p.newest != nil || len(p.tasks) != 0 {
		t.Error("the list is not empty after all were taken")
	}
}

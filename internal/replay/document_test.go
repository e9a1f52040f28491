package replay_test

import (
	"testing"

	"github.com/patchbay-dev/patchbay/internal/replay"
	"github.com/patchbay-dev/patchbay/mcp"
)

func TestDocument(t *testing.T) {
	r := &replay.Report{
		Revision: "2026-07-28", Server: &mcp.ServerInfo{Implementation: mcp.Implementation{Name: "shop"}}, Same: 1, Differ: 1, Skipped: 1,
		Outcomes: []*replay.Outcome{
			{Label: "opening"},
			{Line: 3, Label: "tools/list", Skipped: "not known"},
			{Line: 5, Label: "ping", Differences: []replay.Difference{{Path: "a", Recorded: "1", Now: "2"}}},
		},
	}
	raw, err := r.Document("t.jsonl", &replay.Recording{Revision: "2025-06-18"})
	const want = `{"trace":"t.jsonl","recordedRevision":"2025-06-18","revision":"2026-07-28","server":"shop","same":1,"differ":1,"skipped":1,"exchanges":[` +
		`{"request":"opening","outcome":"same"},{"line":3,"request":"tools/list","outcome":"skipped","why":"not known"},` +
		`{"line":5,"request":"ping","outcome":"differs","differences":[{"path":"a","recorded":"1","now":"2"}]}]}`
	if err != nil || string(raw) != want {
		t.Errorf("%s, %v, want %s", raw, err, want)
	}
}

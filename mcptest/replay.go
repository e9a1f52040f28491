package mcptest

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/replay"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Replay plays the client's side of a recording against s, in memory and in the recorded revision,
// and fails the test for each answer that differs from the recorded one. Ids, times, states,
// cursors and the members named in ignore may differ. A request that cannot be played is logged.
//
// The file is a trace in the format of package trace, for instance from "patchbay --trace", or an
// archive of [Golden].
func Replay(t testing.TB, file string, s *mcp.Server, ignore ...string) {
	t.Helper()
	rec := readRecording(t, file)
	near, far := jsonrpc.Pipe()
	serve(t, s, far)
	open := func(ctx context.Context, c *mcp.Client) (*mcp.Session, error) {
		if rec.Revision != "" {
			c.Revisions = []mcp.Revision{mcp.Revision(rec.Revision)}
		}
		session, err := c.Connect(ctx, Wire(near))
		if err == nil {
			t.Cleanup(func() { session.Close() })
		}
		return session, err
	}
	report, err := replay.Run(t.Context(), rec, &replay.Options{Open: open, Ignore: ignore})
	if err != nil {
		t.Fatalf("replay %s: %v", file, err)
	}
	for _, o := range report.Outcomes {
		if o.Skipped != "" {
			t.Logf("%s, frame %d: %s is not played: %s", file, o.Line, o.Label, o.Skipped)
		}
		for _, d := range o.Differences {
			t.Errorf("%s, frame %d: %s: %s:\n got  %s\n want %s", file, o.Line, o.Label, d.Path, d.Now, d.Recorded)
		}
	}
}

// Mock returns a server that answers like the recorded one, for tests of clients. It serves
// clients of every revision: a request is answered by the exchange with the same method and
// params, or else by one about the same tool, prompt or resource, in recorded order. A request
// that was not recorded is an error that lists the recorded ones.
func Mock(t testing.TB, file string) *mcp.Server {
	t.Helper()
	return replay.NewMock(readRecording(t, file)).Server()
}

func readRecording(t testing.TB, file string) *replay.Recording {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("recording: %v", err)
	}
	if _, section, _ := splitArchive(string(text)); section != "" {
		text = []byte(section)
	}
	rec, err := replay.Read(strings.NewReader(string(text)), "")
	if err != nil {
		t.Fatalf("recording %s: %v", file, err)
	}
	for _, f := range rec.Faults {
		t.Logf("recording %s: %s", file, f)
	}
	return rec
}

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/trace"
)

// TestRecordFolder: up --record writes a file that trace, replay and mock read, without secrets, in
// which the frames of a server name the request of the client.
func TestRecordFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "frames")
	r := startUp(t, map[string]any{"stub": stubServer(t)}, "--record", dir)
	s, err := (&mcp.Client{Name: "c", Version: "1"}).Dial(t.Context(), r.url)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.CallTool(t.Context(), "stub_args", map[string]any{"text": "marked", "password": "hunter2hunter2"}); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if err := r.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Wait(); err != nil {
		t.Errorf("up: %v\n%s", err, r.stderr)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	if len(files) != 1 {
		t.Fatalf("files %q, want one", files)
	}
	raw, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(raw, []byte("hunter2")) {
		t.Errorf("a secret is recorded:\n%s", raw)
	}
	var front, back []trace.Cause
	for f, err := range trace.Read(bytes.NewReader(raw)) {
		switch {
		case err != nil:
			t.Error(err)
		case !bytes.Contains(f.Msg, []byte("marked")) || !bytes.Contains(f.Msg, []byte(`"tools/call"`)):
		case f.Dir == trace.In:
			front = append(front, trace.Cause{Conn: f.Conn, ID: idOf(f)})
		default:
			back = append(back, f.For)
		}
	}
	if len(front) != 1 || len(back) != 1 || front[0] != back[0] {
		t.Errorf("the call came as %v, and was sent for %v", front, back)
	}
	var out, errs strings.Builder
	if code := run(context.Background(), []string{"trace", files[0], "--conn", "stub/*"}, strings.NewReader(""), &out, &errs); code != 0 || !strings.Contains(out.String(), "for "+back[0].String()+": ") {
		t.Errorf("trace: exit code %d, %s\n%s", code, errs.String(), out.String())
	}
	// replay and mock take a file and the folder, on the side of the clients and on that of a server.
	for _, of := range []string{files[0], dir} {
		for _, side := range []struct{ conn, tool string }{{"http-*", "stub_args"}, {"stub/*", "args"}} {
			var out, errs strings.Builder
			if code := run(t.Context(), []string{"replay", of, "--conn", "stub/*", "--config", r.file, "-s", "stub", "--ignore", "password"}, strings.NewReader(""), &out, &errs); !strings.Contains(out.String(), "tools/call args") {
				t.Errorf("replay %s: exit code %d, %s%s", of, code, out.String(), errs.String())
			}
			cmd, stderr := program(t, "mock", of, "--conn", side.conn)
			mocked, err := (&mcp.Client{Name: "c", Version: "1"}).Start(t.Context(), cmd)
			if err != nil {
				t.Fatal(err, stderr)
			}
			if res, err := mocked.CallTool(t.Context(), side.tool, map[string]any{"text": "marked"}); err != nil || !strings.Contains(res.Text(), "marked") {
				t.Errorf("mock %s --conn %s: %v, %v", of, side.conn, res, err)
			}
			mocked.Close()
		}
	}
	call := func(args ...string) (int, []string, string) {
		var out, errs strings.Builder
		code := run(context.Background(), append([]string{"trace", dir}, args...), strings.NewReader(""), &out, &errs)
		return code, strings.Split(strings.TrimSpace(out.String()), "\n"), errs.String()
	}
	_, all, _ := call("--since", "1h")
	code, lines, errs2 := call("--since", "10m", "--call", front[0].String())
	if code != 0 || len(lines) < 4 || len(lines) >= len(all) {
		t.Fatalf("trace --call: exit code %d, %s\n%s", code, errs2, strings.Join(lines, "\n"))
	}
	for _, line := range lines[1:] { // below the name of the file
		if own := strings.Contains(line, front[0].Conn) && strings.Contains(line, "#"+strings.Trim(front[0].ID, `"`)); !own && !strings.Contains(line, "for "+front[0].String()+": ") {
			t.Errorf("trace --call shows %s", line)
		}
	}
	for _, tt := range []struct {
		args []string
		code int
		text string
	}{
		{[]string{"--since", "soon"}, 2, "--since cannot be"},
		{[]string{"--call", "7"}, 2, "--call cannot be"},
		{[]string{"--call", "none #1"}, 0, "none of the"},
		{[]string{"--since", "2100-01-01"}, 0, "has nothing since 2100"},
	} {
		if code, lines, text := call(tt.args...); code != tt.code || lines[0] != "" || !strings.Contains(text, tt.text) {
			t.Errorf("trace %q: exit code %d, %q, %q; want %d and %q", tt.args, code, text, lines, tt.code, tt.text)
		}
	}
}

// TestRecordStart: in a recording of an up that starts a process for each session, the start names the request
// that has caused it. That of the process for lists names none.
func TestRecordStart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "frames")
	server := stubServer(t, "stuck", string(mcp.V2025_11_25))
	server["patchbay"] = map[string]any{"share": "session"}
	r := startUp(t, map[string]any{"stub": server}, "--record", dir)
	for range 2 {
		s, err := (&mcp.Client{Name: "c", Version: "1", Revisions: []mcp.Revision{mcp.V2025_11_25}}).Dial(t.Context(), r.url)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.CallTool(t.Context(), "stub_args", map[string]any{"text": "marked"}); err != nil {
			t.Fatal(err)
		}
		s.Close()
	}
	if err := r.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Skip(err) // Windows
	}
	if err := r.cmd.Wait(); err != nil {
		t.Errorf("up: %v\n%s", err, r.stderr)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	if len(files) != 1 {
		t.Fatalf("files %q, want one", files)
	}
	raw, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	calls, starts := map[trace.Cause]bool{}, map[trace.Cause]int{}
	for f, err := range trace.Read(bytes.NewReader(raw)) {
		switch {
		case err != nil:
			t.Error(err)
		case f.Kind == trace.KindStart:
			starts[f.For]++
		case f.Dir == trace.In && bytes.Contains(f.Msg, []byte(`"tools/call"`)):
			calls[trace.Cause{Conn: f.Conn, ID: idOf(f)}] = true
		}
	}
	if len(calls) != 2 || len(starts) != 3 || starts[trace.Cause{}] != 1 {
		t.Errorf("starts %v for the calls %v, want one for each and one for the lists", starts, calls)
	}
	for call := range calls {
		if starts[call] != 1 {
			t.Errorf("%d processes were started for the call %s", starts[call], call)
		}
	}
}

// idOf returns the id of a frame's message, as JSON.
func idOf(f trace.Frame) string {
	_, after, _ := strings.Cut(string(f.Msg), `"id":`)
	id, _, _ := strings.Cut(after, ",")
	return id
}

// TestRecordFolderRefused: a folder that cannot be written is an error before anything starts.
func TestRecordFolderRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"up", "--http", "127.0.0.1:0", "-s", "everything"}, {"serve", "everything", "--http", "127.0.0.1:0"}, {"bridge", "--http", "127.0.0.1:0", "-s", "everything"}} {
		var out, errs strings.Builder
		code := run(t.Context(), append(args, "--record", file), strings.NewReader(""), &out, &errs)
		if code != 2 || !strings.Contains(errs.String(), "--record: record frames: ") {
			t.Errorf("%s: exit code %d, %s, want 2 and the folder", args[0], code, errs.String())
		}
	}
}

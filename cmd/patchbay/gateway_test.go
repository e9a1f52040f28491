package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Up follows its gateway.yaml: a required server that mcp.json loses makes it failing, and changed
// readiness and limits count without a restart.
func TestUpFollowsGatewayFile(t *testing.T) {
	runtimeFolder(t)
	path := filepath.Join(t.TempDir(), "gateway.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path+"~", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+"~", path); err != nil {
			t.Fatal(err)
		}
	}
	write("ready: {require: [a]}\n")
	r := startUp(t, map[string]any{"a": stubServer(t), "b": stubServer(t)}, "--gateway", path)
	state := func() string {
		res, err := http.Get(strings.TrimSuffix(r.url, "/mcp") + "/readyz")
		if err != nil {
			return err.Error()
		}
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body)
		return string(text)
	}
	until(t, "it is ready", func() bool { return strings.Contains(state(), `"state":"ready"`) })
	writeConfig(t, r.file, map[string]any{"b": stubServer(t)})
	until(t, "it fails without a", func() bool {
		s := state()
		return strings.Contains(s, `"state":"failing"`) && strings.Contains(s, "required, but not in")
	})
	write("limits: [\"tool:b_args=1/h\"]\n")
	r.stderr.await(t, "changed ready and limits")
	until(t, "it is ready again", func() bool { return strings.Contains(state(), `"state":"ready"`) })
	s, err := (&mcp.Client{Name: "host", Version: "1"}).Dial(t.Context(), r.url)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.CallTool(t.Context(), "b_args", map[string]any{"count": 1}); err != nil {
		t.Errorf("the first call: %v", err)
	}
	if _, err := s.CallTool(t.Context(), "b_args", map[string]any{"count": 1}); err == nil || !strings.Contains(err.Error(), "than 1/h") {
		t.Errorf("the second call has the error %v, want that of the limit", err)
	}

	// The state says that a faulty file is not in use, until it is right again.
	write("limits: [1/s]\nview: x\n")
	fault := path + ` has faults; the gateway is unchanged: ` + path + `:2:1: the file has no member "view"`
	until(t, "the fault is in the state", func() bool { return strings.Contains(patchbay(t, "status"), "\n"+fault) })
	if got := patchbay(t, "top", "--once"); !strings.Contains(got, path+" has faults; ") {
		t.Errorf("top shows\n%s", got)
	}
	if got := patchbay(t, "status", "--json"); !strings.Contains(got, `"unapplied":["`+path+` has faults; `) {
		t.Errorf("status --json shows\n%s", got)
	}
	write("limits: [\"tool:b_args=1/h\"]\n")
	until(t, "the state has no fault", func() bool { return !strings.Contains(state(), "unapplied") })
}

// Up records frames and serves metrics as gateway.yaml says, and its lines of the audit log say what
// was configured and what has changed.
func TestUpGatewayRecords(t *testing.T) {
	runtimeFolder(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "gateway.yaml")
	const text = "record: {dir: frames, bytes: 1MiB, age: 1h}\nlisten: {metrics: 127.0.0.1:0}\naudit: {file: audit.jsonl}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r := startUp(t, map[string]any{"a": stubServer(t)}, "--gateway", path)
	s, err := (&mcp.Client{Name: "host", Version: "1"}).Dial(t.Context(), r.url)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.CallTool(t.Context(), "a_args", map[string]any{"count": 1}); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if got := readMetrics(t, r.stderr); !strings.Contains(got, `tool_name="args"`) {
		t.Errorf("the metrics are %s", got)
	}
	if got := patchbay(t, "status"); !strings.Contains(got, "(frames "+filepath.Join(dir, "frames")+")") {
		t.Errorf("status shows\n%s", got)
	}
	if err := os.WriteFile(path, []byte(text+"limits: [100/s]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.stderr.await(t, "changed limits")
	writeConfig(t, r.file, map[string]any{"a": stubServer(t), "b": stubServer(t)})
	r.stderr.await(t, `\+ b`)
	if err := os.WriteFile(path, []byte(strings.Replace(text, "1h", "2h", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	r.stderr.await(t, "changes of record need a restart")
	r.stop(t)
	if files, _ := filepath.Glob(filepath.Join(dir, "frames", "trace-*.jsonl")); len(files) == 0 {
		t.Error("there are no frames")
	}
	var got []string
	for e, err := range audit.Read(filepath.Join(dir, "audit.jsonl")) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == audit.Config {
			got = append(got, e.Event+" "+digests.ReplaceAllString(string(e.Detail), "D"))
		}
	}
	want := []string{`start {"gateway":"D","servers":"D"}`, `changed {"changed":"limits","gateway":"D"}`, `changed {"changed":"+ b","servers":"D"}`, `changed {"changed":"limits, record","gateway":"D"}`}
	if !slices.Equal(got, want) {
		t.Errorf("the configuration has the lines\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

var digests = regexp.MustCompile("sha256:[0-9a-f]{64}")

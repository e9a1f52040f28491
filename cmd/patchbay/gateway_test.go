package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
}

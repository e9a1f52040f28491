package auth_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/auth"
)

// A Guard without a Logger says why it refuses everything, and keeps quiet about callers.
func TestFaultOfConfigurationIsLogged(t *testing.T) {
	var said bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&said, nil)))
	defer slog.SetDefault(before)
	status := func(file string) int {
		g := &auth.Guard{Verifiers: []auth.Verifier{&auth.APIKeys{File: file}}}
		w := httptest.NewRecorder()
		r := httptest.NewRequest("POST", "/mcp", nil)
		r.Header.Set("Authorization", "Bearer pb_nobody_SECRET")
		g.Protect(http.NotFoundHandler()).ServeHTTP(w, r)
		return w.Code
	}
	missing := filepath.Join(t.TempDir(), "keys.jsonl")
	if code := status(missing); code != http.StatusInternalServerError || !strings.Contains(said.String(), "keys.jsonl") {
		t.Errorf("%d, logged %q", code, said.String())
	}
	said.Reset()
	empty := filepath.Join(t.TempDir(), "keys.jsonl")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := status(empty); code != http.StatusUnauthorized || said.Len() > 0 {
		t.Errorf("%d for a wrong key, logged %q", code, said.String())
	}
}

package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/config"
)

// The entry of an OpenAPI document is the built-in server, with inputs, variables and the folder of the file.
func TestOpenAPI(t *testing.T) {
	t.Setenv("OPENAPI_TEST", "of the environment")
	path := filepath.Join(t.TempDir(), "mcp.json")
	read := func(text string) (*config.File, string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		file, faults, err := config.Inspect(path, nil)
		said := fmt.Sprint(err)
		for _, p := range append(faults, file.Warnings...) {
			said += "\n" + p.String()
		}
		return file, said
	}
	file, said := read(`{"inputs": [{"id": "k", "type": "promptString", "password": true}], "mcpServers": {
  "pets": {"openapi": "pets.yaml", "credentials": {"api_key": "${input:k}", "token": {"file": "token"}, "other": {"file": "${OPENAPI_TEST}"}, "env": "${env:OPENAPI_TEST}"}, "headers": {"X-A": "b", "X-N": 7}, "args": ["--exclude", "DELETE *"]},
  "far": {"openapi": "https://api.example.com/openapi.json", "disabled": true}}}`)
	if said != "<nil>" {
		t.Fatal(said)
	}
	s, err := file.Servers[0].Resolve(func(config.Input) (string, error) { return "secret-value", nil })
	want := []string{filepath.Join(filepath.Dir(path), "pets.yaml"), "--exclude", "DELETE *", "--request-header", "X-A=b", "--request-header", "X-N=7", "--credential", "api_key=secret-value",
		"--credential-file", "token=" + filepath.Join(filepath.Dir(path), "token"), "--credential-file", "other=of the environment", "--credential", "env=of the environment"}
	if err != nil || s.Builtin != "openapi" || !slices.Equal(s.Args, want) || len(s.Headers) > 0 {
		t.Errorf("%q %q, %v, want %q", s.Builtin, s.Args, err, want)
	}
	if far := file.Servers[1]; far.Args[0] != "https://api.example.com/openapi.json" || !far.Disabled {
		t.Errorf("%q", far.Args)
	}
	for text, want := range map[string]string{
		`{"openapi": 7}`:  `"openapi" is not a string`,
		`{"openapi": ""}`: "",
		`{"openapi": "a", "url": "https://a.example"}`:         `has both "url" and "openapi"`,
		`{"openapi": "a", "builtin": "sqlite"}`:                `has both "builtin" and "openapi"`,
		`{"openapi": "a", "credentials": []}`:                  `"credentials" is not an object`,
		`{"openapi": "a", "credentials": {"a": true}}`:         `"a" in "credentials" is not a name and a string`,
		`{"openapi": "a", "credentials": {"a": {"file": ""}}}`: `"a" in "credentials" is not a name and a string`,
		`{"openapi": "a", "credentials": {"a": {"env": "B"}}}`: `"a" in "credentials" is not a name and a string`,
		`{"openapi": "a", "headers": {"a": {"file": "b"}}}`:    `"a" in "headers" is not a name and a string`,
		`{"openapi": "a", "args": "x"}`:                        `"args" is not a list`,
		`{"openapi": "a", "type": "http"}`:                     "a builtin server has no transport",
		`{"url": "https://a.example", "credentials": {}}`:      `"credentials" has no effect besides "url"`,
	} {
		_, said := read(`{"mcpServers": {"a": ` + text + `}}`)
		if !strings.Contains(said, want) {
			t.Errorf("%s: %s, want %s", text, said, want)
		}
	}
}

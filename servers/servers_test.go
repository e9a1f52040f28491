package servers_test

import (
	"context"
	"errors"
	"flag"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/servers"
)

// needed are the arguments without which a server cannot be made.
var needed = map[string][]string{"openapi": {"../openapi/testdata/petstore.yaml", "--base", "https://api.example.com", "--resources"}}

func TestEveryServerIsMadeAndDescribed(t *testing.T) {
	for _, name := range servers.Names() {
		srv, err := servers.New(name, needed[name], nil)
		if err != nil {
			t.Errorf("New(%q) = %v", name, err)
			continue
		}
		if srv.Name != name && name != "openapi" { // that one has the name of the API
			t.Errorf("New(%q).Name = %q", name, srv.Name)
		}
		if servers.Summary(name) == "" || !strings.Contains(servers.Usage(name), servers.Summary(name)) {
			t.Errorf("Summary(%q) = %q, Usage = %q", name, servers.Summary(name), servers.Usage(name))
		}
	}
}

// The names of tools are of the characters, and as long, as every client takes
// (TOOL-26-013, -015, -016).
func TestNamesOfTools(t *testing.T) {
	name := regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)
	for _, server := range servers.Names() {
		srv, err := servers.New(server, needed[server], nil)
		if err != nil {
			t.Fatal(err)
		}
		s := mcptest.Connect(t, srv, &mcp.Client{Name: "c", Version: "1"}, mcp.V2026_07_28)
		n := 0
		for tool, err := range s.Tools(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if n++; !name.MatchString(tool.Name) {
				t.Errorf("%s has a tool %q", server, tool.Name)
			}
		}
		if n == 0 {
			t.Errorf("%s has no tools", server)
		}
	}
}

// Servers with default arguments change nothing outside of themselves.
func TestUnattended(t *testing.T) {
	srv, err := servers.New("files", append(servers.Unattended("files"), t.TempDir()), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Shutdown(context.Background()) }) // Windows does not remove an open folder
	s := mcptest.Connect(t, srv, &mcp.Client{Name: "c", Version: "1"}, mcp.V2026_07_28)
	for tool, err := range s.Tools(t.Context()) {
		if err != nil || tool.Annotations.ReadOnly == nil || !*tool.Annotations.ReadOnly {
			t.Errorf("files has %v, %v", tool, err)
		}
	}
	for _, name := range servers.Names() {
		if _, err := servers.New(name, append(servers.Unattended(name), needed[name]...), nil); err != nil {
			t.Error(err)
		}
	}
	if got := servers.Unattended("nosuch"); got != nil {
		t.Errorf("Unattended of an unknown server = %q", got)
	}
}

func TestNewSaysWhatIsWrong(t *testing.T) {
	tests := []struct {
		name   string
		server string
		args   []string
		want   string
	}{
		{"unknown server", "nosuch", nil, "everything"},
		{"unknown flag", "everything", []string{"--colour"}, "colour"},
		{"missing folder", "sqlite", []string{"--db", filepath.Join(t.TempDir(), "missing", "x.db")}, "create it"},
		{"argument", "everything", []string{"x.db"}, `"x.db"`},
		{"argument behind a flag", "sqlite", []string{"--timeout", "1s", "x.db"}, `"x.db"`},
		{"both names of a flag", "sqlite", []string{"--db-path", "x.db", "--db", "y.db"}, "--db and --db-path are two names"},
		{"empty file", "sqlite", []string{"--db", ""}, "--db needs a value"},
		{"empty file by the other name", "sqlite", []string{"--db-path="}, "--db-path needs a value"},
		{"empty file of the shop", "shop", []string{"--db="}, "--db needs a value"},
		{"empty host", "fetch", []string{"--allow-host", ""}, "--allow-host: the value is empty"},
		{"empty proxy", "fetch", []string{"--proxy="}, "--proxy: the value is empty"},
		{"missing folder by the other name", "sqlite", []string{"--db-path", filepath.Join(t.TempDir(), "missing", "x.db")}, "create it"},
		{"no document", "openapi", nil, "name one document: a file or a URL"},
		{"not a document", "openapi", []string{"servers_test.go"}, "servers_test.go:"},
		{"no such document", "openapi", []string{"missing.json"}, "missing.json"},
		{"no server in the document", "openapi", []string{"testdata/relative.yaml"}, "say the base"},
		{"no such scheme", "openapi", []string{"--credential", "x=y", needed["openapi"][0]}, "it has key"},
		{"no such variable", "openapi", []string{"--credential-env", "key=PATCHBAY_TEST_NONE", needed["openapi"][0]}, "PATCHBAY_TEST_NONE is not set"},
		{"no value", "openapi", []string{"--request-header", "a", needed["openapi"][0]}, "write NAME=VALUE"},
		{"missing operand", "files", []string{".", "--read-only", filepath.Join(t.TempDir(), "missing")}, "missing"},
		{"operand like a flag", "files", []string{"--", "--read-only"}, `"--read-only" does not exist`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			srv, err := servers.New(tt.server, tt.args, nil)
			if err == nil || srv != nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("New(%q, %q) = %v, %v; want an error with %q", tt.server, tt.args, srv, err, tt.want)
			}
		})
	}
	if _, err := servers.New("everything", []string{"-h"}, nil); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("New with -h = %v, want flag.ErrHelp", err)
	}
}

// HasFlag knows the flags of the servers that are named, and of no others.
func TestHasFlag(t *testing.T) {
	for _, tt := range []struct {
		flag string
		of   []string
		want bool
	}{
		{"--timeout", []string{"fetch"}, true}, {"timeout", []string{"fetch"}, true}, {"--timeout", []string{"everything"}, false}, {"--timeout", nil, false},
		{"--timeout", []string{"pets.yaml", "openapi"}, true}, {"--request-header", []string{"openapi"}, true}, {"--header", []string{"openapi", "fetch"}, false},
	} {
		if got := servers.HasFlag(tt.flag, tt.of...); got != tt.want {
			t.Errorf("HasFlag(%q, %q) = %t", tt.flag, tt.of, got)
		}
	}
}

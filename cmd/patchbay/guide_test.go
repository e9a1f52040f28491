package main

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/audit"
)

// TestGuide follows the section Deploy of docs/gateway.md: it writes the files, runs the commands, and
// calls tools with the key. Only the ports are others.
func TestGuide(t *testing.T) {
	page, err := os.ReadFile("../../docs/gateway.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(strings.ReplaceAll(string(page), "\r\n", "\n"), "\n## Deploy\n")
	section, _, _ = strings.Cut(section, "\n## ")
	dir := alone(t)
	runtimeFolder(t)
	section = regexp.MustCompile(`127\.0\.0\.1:(7420|9090)`).ReplaceAllString(section, "127.0.0.1:0")
	files := regexp.MustCompile("(?ms)^`([a-z.]+)`\n```[a-z]*\n(.*?)```").FindAllStringSubmatch(section, -1)
	for _, file := range files {
		if err := os.WriteFile(file[1], []byte(file[2]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	key, other, url := "", "", ""
	apiKey := func(o ran) string { return regexp.MustCompile(`pb_\S+`).FindString(o.stdout) }
	var r *running
	commands := regexp.MustCompile(`(?m)^\$ patchbay (.*)$`).FindAllStringSubmatch(section, -1)
	for _, c := range commands {
		args := words(c[1])
		if args[0] == "up" {
			r = beginUp(t, args...)
			url = r.url
			continue
		}
		o := typed(t, "", args...)
		if o.code != exitOK {
			t.Fatalf("%s: exit code %d, %s%s", c[1], o.code, o.stdout, o.stderr)
		}
		if args[0] == "token" {
			key = apiKey(o)
			other = apiKey(typed(t, "", "token", "key", "bob", "--file", "keys.jsonl"))
		}
	}
	if len(files) != 3 || len(commands) != 3 || key == "" || url == "" {
		t.Fatalf("%d files, %d commands, key %q, address %q; the search is broken", len(files), len(commands), key, url)
	}
	for _, tt := range []struct {
		key, tool, args string
		code            int
	}{
		{key, "db_read_query", "query=SELECT 1", exitOK},
		{key, "shop_add-to-cart", `product_name=Ember Stove`, exitOK},
		{other, "shop_add-to-cart", `product_name=Ember Stove`, exitAnswer},
	} {
		o := typed(t, "", "call", tt.tool, tt.args, "-s", url, "--header", "Authorization: Bearer "+tt.key)
		if o.code != tt.code {
			t.Errorf("call %s: exit code %d, want %d: %s%s", tt.tool, o.code, tt.code, o.stdout, o.stderr)
		}
	}
	res, err := http.Get(strings.TrimSuffix(url, "/mcp") + "/readyz")
	if err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("/readyz: %v, %v", res, err)
	}
	if text := readMetrics(t, r.stderr); !strings.Contains(text, `error_type="policy"} 1`) {
		t.Errorf("the metrics have no refusal:\n%s", text)
	}
	report, err := audit.Verify([]string{filepath.Join(dir, "audit.jsonl")}, nil)
	if err != nil || len(report.Faults) > 0 || report.Lines < 5 {
		t.Errorf("the audit log: %+v, %v", report, err)
	}
}

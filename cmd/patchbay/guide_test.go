package main

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/audit"
)

// TestGuide follows the files of docs/deploy.md: it writes them, runs the commands, and calls tools with the key. Only the ports are
// others. The commands of docs/observe.md answer for that gateway, and a copy of its folder is the same gateway.
func TestGuide(t *testing.T) {
	page, err := os.ReadFile("../../docs/deploy.md")
	if err != nil {
		t.Fatal(err)
	}
	observing, err := os.ReadFile("../../docs/observe.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(strings.ReplaceAll(string(page), "\r\n", "\n"), "\n## The files\n")
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
			r = beginUp(t, append(args, "--log", "access.jsonl", "--record", "frames")...)
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
	if runtime.GOOS == "windows" {
		return // whose locks keep open files from being copied; and Wine has no sockets, by which status finds up
	}
	asked := 0
	for _, c := range regexp.MustCompile("`patchbay ((?:status|top|logs|audit|usage|trace|gateway) ?[^`]*)`").FindAllStringSubmatch(string(observing), -1) {
		if asked++; c[1] != "logs db" { // it has written nothing
			if o := typed(t, "", words(c[1])...); o.code != exitOK && c[1] != "status" || strings.TrimSpace(o.stdout) == "" {
				t.Errorf("patchbay %s: exit code %d, %q %q", c[1], o.code, o.stdout, o.stderr)
			}
		}
	}
	if lines, err := os.ReadFile("access.jsonl"); asked < 10 || err != nil || !strings.Contains(string(lines), "shop_add-to-cart") {
		t.Errorf("%d commands; access.jsonl: %q, %v", asked, lines, err)
	}

	backup := t.TempDir()
	if err := os.CopyFS(backup, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	t.Chdir(backup)
	// As behind a proxy.
	_, section, _ = strings.Cut(strings.ReplaceAll(string(page), "\r\n", "\n"), "\n## TLS and a proxy\n")
	limits := regexp.MustCompile(`(?m)^limits: .*$`)
	command := regexp.MustCompile(`(?m)^\$ patchbay (up .*)$`).FindStringSubmatch(section)
	settings, err := os.ReadFile("gateway.yaml")
	if err != nil || command == nil || !limits.MatchString(section) || !limits.Match(settings) {
		t.Fatalf("%v; %q, %q; the search is broken", err, command, settings)
	}
	if err := os.WriteFile("gateway.yaml", limits.ReplaceAll(settings, []byte(limits.FindString(section))), 0o600); err != nil {
		t.Fatal(err)
	}
	copied := beginUp(t, words(command[1])...)
	ready, err := http.NewRequest("GET", strings.TrimSuffix(copied.url, "/mcp")+"/readyz", nil)
	if err != nil {
		t.Fatal(err)
	}
	ready.Host = "mcp.example.com"
	if res, err := http.DefaultClient.Do(ready); err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("by its public name: %v, %v", res, err)
	}
	if o := typed(t, "", "call", "db_read_query", "query=SELECT 1", "-s", copied.url, "--header", "Authorization: Bearer "+key); o.code != exitOK {
		t.Errorf("at the copy: exit code %d: %s%s", o.code, o.stdout, o.stderr)
	}
	again, err := audit.Verify([]string{filepath.Join(backup, "audit.jsonl")}, nil)
	if err != nil || len(again.Faults) > 0 || again.Lines <= report.Lines {
		t.Errorf("the audit log of the copy: %+v, %v; that of the gateway: %+v", again, err, report)
	}
}

// The table in docs/observe.md has each kind of error of docs/metrics.md.
func TestFaultsOfPages(t *testing.T) {
	kinds := func(page, heading string) []string {
		text, err := os.ReadFile("../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		_, table, _ := strings.Cut(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n| `error_type` | "+heading)
		table, _, _ = strings.Cut(table, "\n\n")
		var found []string
		for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllStringSubmatch(table, -1) {
			found = append(found, row[1])
		}
		return found
	}
	counted, explained := kinds("metrics.md", "The call failed because"), kinds("observe.md", "Look at")
	slices.Sort(counted)
	slices.Sort(explained)
	if !slices.Equal(counted, explained) || len(counted) < 8 {
		t.Errorf("metrics.md has %q, observe.md %q", counted, explained)
	}
}

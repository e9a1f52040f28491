package published

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "make schemas.json.gz")

// without leaves out what does not decide: descriptions, and the examples in them.
func without(v any, named bool) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if text, ok := member.(string); ok && name == "description" && !named && text != "" {
				delete(v, name)
				continue
			}
			v[name] = without(member, name == "properties" || name == "$defs" || name == "definitions")
		}
	case []any:
		for i := range v {
			v[i] = without(v[i], false)
		}
	}
	return v
}

// The embedded file has the published schemas, and is small.
func TestPacked(t *testing.T) {
	files, err := filepath.Glob("../../../internal/wirecheck/schemas/20*.json")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d schemas, %v", len(files), err)
	}
	docs := map[string]any{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var doc any
		if err := json.Unmarshal(text, &doc); err != nil {
			t.Fatal(err)
		}
		docs[strings.TrimSuffix(filepath.Base(file), ".json")] = without(doc, false)
	}
	want, err := json.Marshal(docs)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		var out bytes.Buffer
		z, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
		z.Write(want)
		z.Close()
		if err := os.WriteFile("schemas.json.gz", out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		packed = out.Bytes()
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(z); err != nil || !bytes.Equal(got, want) {
		t.Errorf("schemas.json.gz is not made of the published schemas; go test ./inspector/internal/published -run TestPacked -update makes it (%v)", err)
	}
	if len(packed) > 150<<10 {
		t.Errorf("the schemas take %d bytes", len(packed))
	}
	t.Logf("%d bytes", len(packed))
}

// Every definition of a message can be compiled, of every revision.
func TestCompiled(t *testing.T) {
	if len(sets()) != 5 {
		t.Fatalf("%d revisions", len(sets()))
	}
	for revision, s := range sets() {
		for _, kinds := range s.methods {
			for _, methods := range kinds {
				for method, def := range methods {
					if s.compile(def) == nil {
						t.Errorf("%s: %s of %s cannot be compiled", revision, def, method)
					}
				}
			}
		}
		if len(s.methods[0][0]) < 8 {
			t.Errorf("%s has %d requests of clients", revision, len(s.methods[0][0]))
		}
	}
}

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		revision, method, msg string
		client                bool
		want                  string // in a fault; empty: there is none; "-": not checked
	}{
		{"2025-11-25", "tools/call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}`, true, ""},
		{"2025-11-25", "tools/call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}`, true, "name"},
		{"2025-11-25", "tools/call", `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`, false, ""},
		{"2025-11-25", "tools/call", `{"jsonrpc":"2.0","id":1,"result":{"content":1}}`, false, "content"},
		{"2025-11-25", "tools/call", `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}`, false, ""},
		{"2025-11-25", "tools/call", `{"jsonrpc":"2.0","id":1,"error":{"code":"1","message":"no"}}`, false, "code"},
		{"2024-11-05", "notifications/progress", `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1}}`, false, "progress"},
		{"2025-11-25", "x/y", `{"jsonrpc":"2.0","id":1,"method":"x/y"}`, true, "-"},
		{"1999-01-01", "tools/call", `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, true, "-"},
		{"", "ping", `[]`, true, "-"},
	} {
		faults, checked := Check(tt.revision, tt.method, []byte(tt.msg), tt.client)
		got := strings.Join(faults, "; ")
		switch {
		case checked == (tt.want == "-"):
			t.Errorf("%s %s: checked is %t", tt.revision, tt.msg, checked)
		case tt.want == "" && got != "", tt.want != "" && tt.want != "-" && !strings.Contains(got, tt.want):
			t.Errorf("%s %s: %q", tt.revision, tt.msg, got)
		}
	}
}

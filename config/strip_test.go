package config

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestStrip(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"line comment", "1 // x\r\n2", "1     \r\n2"},
		{"block comment", "/* \n * x */1", "   \n       1"},
		{"trailing commas", `{"a":[1,2,],}`, `{"a":[1,2 ] }`},
		{"comma before a comment", "[1, /* x */ ]", "[1          ]"},
		{"strings", `{"a":"// /* ,] \" // ","b":"\\"} // "`, `{"a":"// /* ,] \" // ","b":"\\"}     `},
		{"lone commas stay", `[,] {"a":,}`, `[,] {"a":,}`},
		{"two commas stay one", `[1,,]`, `[1,,]`},
		{"byte order mark", "\xef\xbb\xbf{}", "   {}"},
		{"slash alone", `{/}`, `{/}`},
		{"comment in a comment", "/* // */1", "        1"},
		{"open comment stays", "[1 /* x", "[1 /* x"},
		{"open string to the line end", "\"a // b\n// c", "\"a // b\n    "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := string(strip([]byte(tt.in))); got != tt.want {
				t.Errorf("strip(%q) = %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

// The output is as long as the input and keeps its line breaks; valid JSON is unchanged, and
// strip is idempotent.
func FuzzStrip(f *testing.F) {
	for _, seed := range []string{`{"a": [1, 2,], /* x */ "b": "//"} // c`, "\xef\xbb\xbf{}", `{"C:\\": "\""}`, "[1,\n]"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		before := bytes.Clone(in)
		out := strip(in)
		if !bytes.Equal(in, before) {
			t.Fatalf("strip(%q) changed its input", before)
		}
		if len(out) != len(in) {
			t.Fatalf("strip(%q) = %q: %d bytes, want %d", in, out, len(out), len(in))
		}
		for i := range in {
			if (in[i] == '\n') != (out[i] == '\n') || out[i] != in[i] && out[i] != ' ' {
				t.Fatalf("strip(%q) = %q: byte %d became %q", in, out, i, out[i])
			}
		}
		if json.Valid(in) && !bytes.Equal(in, out) {
			t.Fatalf("strip(%q) = %q, want JSON unchanged", in, out)
		}
	})
}

// For any file, Load returns servers or faults with a place in it.
func FuzzLoad(f *testing.F) {
	for _, seed := range []string{
		`{"mcpServers":{"a":{"command":"x","args":["${A:-b}"],"env":{"K":"v"},"cwd":"d"}}}`,
		`{"servers":{"a":{"url":"http://h/","headers":{"K":"v"},"type":"http"},"b":{"builtin":"sqlite"}}}`,
		"{\"servers\":{\"a\":{\"comand\":1,}}} // x\n", `{"servers":{"a":{"command":"C:\Users"`, "\xef\xbb\xbf{",
		`{"inputs":[{"id":"i","password":true}],"servers":{"a":{"command":"${input:i}","args":["a${input:i}b"],"env":{"K":"${input:i}"},"cwd":"${input:i}"}}}`,
		`{"inputs":[{"id":"i"}],"patchbay":{"model":"m","models":{"m":{"provider":"text","name":"n","baseUrl":"http://h/","key":"${K}","headers":{"a":"${input:i}"},"window":1,"price":{"input":1},"hints":["h"]}}}}`,
	} {
		f.Add([]byte(seed))
	}
	none := func(string) (string, bool) { return "", false }
	f.Fuzz(func(t *testing.T, in []byte) {
		file, faults, err := parse("mcp.json", in, none)
		if err != nil {
			t.Fatalf("%q gave %v", in, err)
		}
		lines := strings.Split(string(in), "\n")
		for _, p := range slices.Concat(faults, file.Warnings) {
			if p.Path == "mcp.json" && (p.Line < 1 || p.Line > len(lines) || p.Column < 1 || p.Column > len(lines[p.Line-1])+1) {
				t.Fatalf("%q: %v is outside the file", in, p)
			}
		}
		for _, m := range file.Models {
			all, err := m.Resolve(func(Input) (string, error) { return "http://h/", nil })
			if m.Name == "" || m.Model == "" || !slices.Contains(Providers, m.Provider) || (err == nil) == (len(m.Missing()) > 0) {
				t.Fatalf("%q gave %v, which Resolve refuses with %v", in, m, err)
			}
			if err == nil && len(all.Inputs()) > 0 {
				t.Fatalf("%q: inputs left: %v", in, all.Inputs())
			}
		}
		for _, s := range file.Servers {
			if s.Name == "" || (s.Command == "") == (s.URL == "" && s.Builtin == "") {
				t.Fatalf("%q gave %+v", in, s)
			}
			all, err := s.Resolve(func(Input) (string, error) { return "http://h/", nil })
			if err != nil && !strings.Contains(err.Error(), "url") {
				t.Fatalf("%q: Resolve of %v = %v", in, s, err)
			}
			if err == nil && len(all.Inputs()) > 0 {
				t.Fatalf("%q: inputs left: %v", in, all.Inputs())
			}
		}
	})
}

package providers_test

import (
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/providers"
)

// Each line is whole, names the pages that it rests on, and is in docs/host.md.
func TestTable(t *testing.T) {
	doc, err := os.ReadFile("../../docs/host.md")
	if err != nil {
		t.Fatal(err)
	}
	set := func(string) string { return "x" }
	for _, name := range providers.Names() {
		p := providers.Named(name)
		if base, missing := p.Home(set); missing != "" || strings.HasSuffix(base, "/") {
			t.Errorf("%s: the address is %q, missing is %q", name, base, missing)
		}
		for _, source := range strings.Split(p.Source, ", ") {
			if u, err := url.Parse(source); err != nil || u.Scheme != "https" || u.Path == "" {
				t.Errorf("%s: the source %q is not the URL of a page", name, source)
			}
		}
		if row := fmt.Sprintf("| `%s/NAME` | ", name); !strings.Contains(string(doc), row) {
			t.Errorf("docs/host.md has no row that begins with %q", row)
		}
		if row := fmt.Sprintf("| `%s/NAME` | `%s` | `%s` | `%s` |", name, p.Base, p.Key, p.Other); p.API == "chat" && name != "openai" && !strings.Contains(string(doc), row) {
			t.Errorf("docs/host.md does not have the row %s", row)
		}
	}
}

func TestAddress(t *testing.T) {
	for _, tt := range []struct{ name, env, want, missing string }{
		{"deepseek", "", "https://api.deepseek.com", ""},
		{"deepseek", "DEEPSEEK_BASE_URL=http://localhost:1/v1/", "http://localhost:1/v1", ""},
		{"azure", "AZURE_OPENAI_ENDPOINT=https://mine.openai.azure.com/", "https://mine.openai.azure.com/openai/v1", ""},
		{"azure", "", "${AZURE_OPENAI_ENDPOINT}/openai/v1", "AZURE_OPENAI_ENDPOINT"},
		{"bedrock", "AWS_REGION=eu-west-1", "https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1", ""},
		{"bedrock", "AWS_BEDROCK_BASE_URL=https://elsewhere.test/v1", "https://elsewhere.test/v1", ""},
	} {
		env := func(name string) string {
			if set, value, _ := strings.Cut(tt.env, "="); set == name {
				return value
			}
			return ""
		}
		if got, missing := providers.Named(tt.name).Address(env); got != tt.want || missing != tt.missing {
			t.Errorf("address of %s with %q = %q, missing %q; want %q, %q", tt.name, tt.env, got, missing, tt.want, tt.missing)
		}
	}
}

func TestUnknown(t *testing.T) {
	for name, want := range map[string]string{
		"opnai": `did you mean "openai"?`, "lm-studio": `did you mean "lmstudio"?`, "llama.cpp": `did you mean "llamacpp"?`, "Groq": `did you mean "groq"?`,
		"github": "retired on 30 July 2026", "nobody": "there are openai, openai-responses, ", "x": "there are openai",
	} {
		if got := providers.Unknown(name); !strings.Contains(got, want) {
			t.Errorf("Unknown(%q) = %q, want %q in it", name, got, want)
		}
	}
}

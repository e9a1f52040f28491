package interop

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/patchbay-dev/patchbay/host/modeltest"
)

// The official JavaScript libraries of OpenAI and Anthropic and package modeltest understand each
// other, so modeltest is a valid test server for our own clients.
func TestModelLibraries(t *testing.T) {
	binary := node(t)
	for _, module := range []string{"openai", "@anthropic-ai"} {
		if _, err := os.Stat(npmFile("node_modules", module)); err != nil {
			if required() {
				t.Fatalf("%v: run npm ci in npm", err)
			}
			t.Skipf("%v: run npm ci in npm", err)
		}
	}
	for _, api := range []string{"chat", "responses", "messages"} {
		t.Run(api, func(t *testing.T) {
			script, err := modeltest.Load("../host/modeltest/testdata/call.yaml")
			if err != nil {
				t.Fatal(err)
			}
			script.Turns = append(script.Turns, script.Turns...) // streamed, and not
			_, url := modeltest.Start(t, script)
			stdout, stderr, err := run(t.Context(), []string{binary, npmFile("peers", "models.mjs"), api, url})
			if err != nil {
				t.Fatalf("models.mjs: %v\nstdout: %s\nstderr: %s", err, stdout, stderr)
			}
			var got struct{ Streamed, Whole string }
			if err := json.Unmarshal([]byte(stdout), &got); err != nil {
				t.Fatalf("models.mjs printed %q: %v", stdout, err)
			}
			if got.Streamed != "It is 5." || got.Whole != "It is 5." {
				t.Errorf("the answers are %+v, want %q", got, "It is 5.")
			}
		})
	}
}

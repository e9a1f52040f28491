package inspector

import (
	"fmt"
	"go/format"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// A call is written for a shell, for curl and as a Go test, whatever its texts are.
func TestPaste(t *testing.T) {
	var got pasted
	post(t, "/ui/paste", `{"server":"my db","tool":"it's/a`+"`"+`tool","arguments":{"q":"$(rm -r x) 'y' \\ `+"`"+`z`+"`"+`"},"headers":{"Mcp-Name":"n","Mcp-Method":"tools/call"},"meta":{"v":1}}`, &got)
	if sh, err := exec.LookPath("sh"); err == nil {
		// Each line of the output is a word, as the shell reads it.
		out, err := exec.Command(sh, "-c", "set -- "+got.CLI+"; for w; do printf '%s\\n' \"$w\"; done").CombinedOutput()
		want := "patchbay\ncall\nit's/a`tool\n{\"q\":\"$(rm -r x) 'y' \\\\ `z`\"}\n-s\nmy db\n"
		if err != nil || string(out) != want {
			t.Errorf("the shell reads %s as\n%s(%v), not\n%s", got.CLI, out, err, want)
		}
		out, err = exec.Command(sh, "-c", "set -- "+got.Curl+"; for w; do printf '%s\\n' \"$w\"; done").CombinedOutput()
		want = "curl\nhttp://127.0.0.1:7420/mcp/s/my%20db\n-H\nMcp-Method: tools/call\n-H\nMcp-Name: n\n-d\n" +
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"it's/a` + "`" + `tool","arguments":{"q":"$(rm -r x) 'y' \\ ` + "`z`" + `"},"_meta":{"v":1}}}` + "\n"
		if err != nil || string(out) != want {
			t.Errorf("the shell reads %s as\n%s(%v), not\n%s", got.Curl, out, err, want)
		}
	}
	formatted, err := format.Source([]byte("package x\n\n" + got.Test))
	if err != nil || string(formatted) != "package x\n\n"+got.Test {
		t.Errorf("the test is not formatted Go (%v):\n%s", err, got.Test)
	}
	if want := "func TestItSATool(t *testing.T)"; !strings.Contains(got.Test, want) {
		t.Errorf("%s is not in\n%s", want, got.Test)
	}
}

// Names of tools that are no words still make names.
func TestPasteOfOddNames(t *testing.T) {
	for _, tool := range []string{"", "--help", "\u202e", "日本", "a\nb", "-"} {
		c := call{Server: "s", Tool: tool, Arguments: []byte(`{}`)}
		if _, err := format.Source([]byte("package x\n\n" + c.test())); err != nil {
			t.Errorf("%q: %v in\n%s", tool, err, c.test())
		}
		if strings.Contains(c.cli(), "call -") {
			t.Errorf("%q is a flag in %s", tool, c.cli())
		}
	}
}

// A name that a terminal would obey, or a program take for an option, does not come into a command, wherever commands are made.
func TestPasteOfHostileNames(t *testing.T) {
	for _, tool := range []string{"x'\x03\ntouch PWN\n", "--trace=/home/me/.bashrc", "-", "a\tb", "a\u009bb", "a\u202eb", "\xff", "http://127.0.0.1:1/x"} {
		headers := map[string]string{"Mcp-Name": "n"}
		for _, c := range []call{{Server: "s", Tool: tool, Headers: headers}, {Server: tool, Tool: "t", Headers: headers}} {
			c.Arguments = []byte(`{}`)
			if cli, curl := c.cli(), c.curl("http://127.0.0.1:7420/mcp"); cli != "" || curl != "" {
				t.Errorf("%q and %q are written as %q and %q", c.Server, c.Tool, cli, curl)
			}
		}
		if !utf8.ValidString(tool) {
			continue // no JSON has it
		}
		f := recorded(t, fmt.Sprintf(`{"dir":"in","conn":"http-1","msg":{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%s,"arguments":{}}}}`, jsonString(tool)))
		if d, ok := f.detail(1, "http://127.0.0.1:7420/mcp"); !ok || d.Row.Method != "tools/call" || d.CLI+d.Curl != "" {
			t.Errorf("%q on the wire: %t, %+v is written as %q and %q", tool, ok, d.Row, d.CLI, d.Curl)
		}
	}
	for name, value := range map[string]string{"-H": "x", "@file": "x", "Mcp-Name": "a\x03", "Mcp-Param-X": "a\n"} {
		c := call{Server: "s", Tool: "t", Arguments: []byte(`{}`), Headers: map[string]string{name: value}}
		if curl := c.curl("http://127.0.0.1:7420/mcp"); curl != "" {
			t.Errorf("the header %q: %q is written as %q", name, value, curl)
		}
	}
}

// A server without a name in the configuration is named by its command.
func TestPasteOfACommand(t *testing.T) {
	c := call{Server: "./bin/python3", Tool: "t", Arguments: []byte(`{}`)}
	words := []string{"--", "./bin/python3", "-m", "my server"}
	if got, want := c.cli(words...), `patchbay call t '{}' -- ./bin/python3 -m 'my server'`; got != want {
		t.Errorf("the command is %q, not %q", got, want)
	}
	f := recorded(t, `{"dir":"in","conn":"http-1","msg":{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{}}}}`)
	if d, _ := f.detail(1, "", words...); d.CLI != c.cli(words...) {
		t.Errorf("on the wire the command is %q", d.CLI)
	}
	for _, words := range [][]string{{"--", "server", "--token", "s3cr3t-value"}, {"--", "a\x03"}} {
		if got := c.cli(words...); got != "" {
			t.Errorf("%q is written as %q", words, got)
		}
	}
}

// Arguments come into commands on one line, without characters that a terminal obeys.
func TestPasteOfHostileArguments(t *testing.T) {
	var got pasted
	post(t, "/ui/paste", "{\"server\":\"s\",\"tool\":\"t\",\"arguments\":{\"q\":\n\t\"a\u202eb\u009bc\"},\"meta\":{\t\"v\":\"\u2066\"}}", &got)
	if want := `patchbay call t '{"q":"a\u202eb\u009bc"}' -s s`; got.CLI != want {
		t.Errorf("the command is %q, not %q", got.CLI, want)
	}
	if !printable(strings.ReplaceAll(got.Curl, "\n", "")) || !strings.Contains(got.Curl, `"_meta":{"v":"\u2066"}`) {
		t.Errorf("the request is %q", got.Curl)
	}
	for _, arguments := range []string{`-1`, `"--help"`, `[]`} {
		if code := post(t, "/ui/paste", `{"server":"s","tool":"t","arguments":`+arguments+`}`, nil); code != http.StatusBadRequest {
			t.Errorf("arguments %s: HTTP %d", arguments, code)
		}
	}
}

// The browser gets the time in the program: in a header, or behind the events of a stream.
func TestTook(t *testing.T) {
	w := httptest.NewRecorder()
	took := &tookWriter{ResponseWriter: w, began: time.Now()}
	took.Header().Set("Content-Type", "application/json")
	took.Write([]byte("{}"))
	took.end()
	if got := w.Header().Get("Server-Timing"); !strings.HasPrefix(got, "total;dur=") || w.Body.String() != "{}" {
		t.Errorf("Server-Timing %q, body %q", got, w.Body)
	}
	w = httptest.NewRecorder()
	took = &tookWriter{ResponseWriter: w, began: time.Now()}
	took.Header().Set("Content-Type", "text/event-stream")
	took.WriteHeader(http.StatusOK)
	took.Write([]byte("data: 1\n\n"))
	if err := http.NewResponseController(took).Flush(); err != nil {
		t.Errorf("Flush: %v", err)
	}
	took.end()
	if got := w.Body.String(); !strings.HasPrefix(got, "data: 1\n\n: took ") || w.Header().Get("Server-Timing") != "" {
		t.Errorf("the stream is %q, header %q", got, w.Header().Get("Server-Timing"))
	}
}

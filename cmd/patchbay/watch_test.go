package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/servers/everything"
)

// TestWatch watches a resource and the lists of a server over HTTP, in every revision, while
// another client changes them, until ctrl-C.
func TestWatch(t *testing.T) {
	srv := httptest.NewServer(everything.New())
	t.Cleanup(srv.Close)
	const uri = "test://watched-resource"
	for _, revision := range mcp.Revisions() {
		t.Run(string(revision), func(t *testing.T) {
			ctx, interrupt := context.WithTimeout(t.Context(), 30*time.Second)
			defer interrupt()
			other, err := (&mcp.Client{Name: "other"}).Dial(ctx, srv.URL)
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()

			out, in := io.Pipe()
			code := make(chan int, 1)
			go func() {
				code <- run(ctx, []string{"watch", uri, "--read", "--json", "-s", srv.URL, "--revision", string(revision)}, strings.NewReader(""), in, io.Discard)
				in.Close()
			}()
			var methods []string
			lines := json.NewDecoder(out)
			next := func() (line struct {
				Method string
				Params struct{ URI string }
				Result struct{ Contents []struct{ Text string } }
			}) {
				t.Helper()
				if err := lines.Decode(&line); err != nil {
					t.Fatalf("after the lines %q: %v", methods, err)
				}
				methods = append(methods, line.Method)
				return line
			}
			next() // the line about what is watched
			next() // the current resource
			call := func(tool string, args any) {
				t.Helper()
				if res, err := other.CallTool(ctx, tool, args); err != nil || res.IsError {
					t.Fatalf("%s: %v, %v", tool, res, err)
				}
			}
			call("touch_resource", map[string]string{"text": string(revision)})
			updated, read := next(), next()
			if updated.Params.URI != uri || len(read.Result.Contents) != 1 || read.Result.Contents[0].Text != string(revision) {
				t.Errorf("the update is %+v, and what was read %+v", updated, read)
			}
			call("test_trigger_tool_change", nil)
			next()
			interrupt()
			go io.Copy(io.Discard, out)
			if got := <-code; got != exitOK {
				t.Errorf("exit code %d after ctrl-C, want %d", got, exitOK)
			}
			want := []string{"notifications/subscriptions/acknowledged", "resources/read",
				"notifications/resources/updated", "resources/read", "notifications/tools/list_changed"}
			if !slices.Equal(methods, want) {
				t.Errorf("lines about %q, want %q", methods, want)
			}
		})
	}
}

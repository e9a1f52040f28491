package cluster_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/cluster"
	"github.com/patchbay-dev/patchbay/mcp"
)

// While a node that was told to end finishes its calls, another one has their session. An answer to a question of such a call, and its
// cancellation, come to the other node and reach the call, also if the session has moved twice. Those of another session do not. A client
// that has lost its connection gets the question at the other node.
func TestMessagesOfAMovedSession(t *testing.T) {
	t.Parallel()
	m := new(cluster.Memory)
	var nodes []member
	cancelled := make(chan string, 10)
	for i := range 3 {
		nodes = append(nodes, newMember(t, m, i, func(n *cluster.Node, srv *mcp.Server) {
			mcp.AddTool(srv, mcp.Tool{Name: "ask"}, func(ctx context.Context, _ struct{}) (string, error) {
				answer, err := mcp.Elicit[struct{ Day string }](ctx, "When?")
				return fmt.Sprint("n", i, " ", answer.Day), err
			})
			mcp.AddTool(srv, mcp.Tool{Name: "wait"}, func(ctx context.Context, in struct{ Name string }) (string, error) {
				mcp.Progress(ctx, 1, 0, "waiting")
				<-ctx.Done()
				cancelled <- fmt.Sprint("n", i, " ", in.Name)
				return "", ctx.Err()
			})
			srv.HTTP.Sessions, srv.HTTP.Events = n.Sessions("/"), n.Events()
		}))
	}
	await(t, "all nodes to be seen", func() bool { return nodes[0].Seen() == 3 && nodes[1].Seen() == 3 && nodes[2].Seen() == 3 })

	ctx, stop := context.WithTimeout(t.Context(), patience)
	t.Cleanup(stop)
	send := func(node int, user, session, body string, header ...string) *http.Response {
		t.Helper()
		return nodes[node].send(t, ctx, "POST", user, session, body, header...)
	}
	accepted := func(w *http.Response, what string) {
		t.Helper()
		if w.StatusCode != http.StatusAccepted {
			said, _ := io.ReadAll(w.Body)
			t.Fatalf("%s: %s, %s", what, w.Status, said)
		}
	}
	const open = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}}`
	ann := send(0, "ann", "", open).Header.Get("Mcp-Session-Id")
	eve := send(0, "eve", "", open).Header.Get("Mcp-Session-Id")
	// call makes a call at the first node, and returns its events once it has sent one, with the question of that if it is one.
	call := func(session, user string, id int, tool, arguments string) (events *bufio.Scanner, question json.RawMessage) {
		t.Helper()
		w := send(0, user, session, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{"progressToken":1}}}`, id, tool, arguments))
		events = bufio.NewScanner(w.Body)
		return events, nextData(t, events).ID
	}
	wait := func(id int, name string) { call(ann, "ann", id, "wait", `{"Name":"`+name+`"}`) }
	asked, question := call(ann, "ann", 2, "ask", "{}")
	_, others := call(eve, "eve", 2, "ask", "{}")
	if string(question) != string(others) {
		t.Fatalf("the questions are %s and %s; the test is for two with one id", question, others)
	}
	w := send(0, "ann", ann, `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"ask","arguments":{}}}`)
	last := ""
	for from := bufio.NewScanner(w.Body); last == "" && from.Scan(); { // the client gets the beginning alone
		last, _ = strings.CutPrefix(from.Text(), "id: ")
	}
	w.Body.Close()
	wait(3, "once")
	wait(4, "twice")
	answer := func(id json.RawMessage, day string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"Day":%q}}}`, id, day)
	}
	cancel := func(id int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id)
	}
	sum := sha256.Sum256([]byte("/\x00" + ann))
	passed := []string{"Patchbay-Cluster-Passed", "session." + hex.EncodeToString(sum[:16])}

	nodes[0].Retire()
	accepted(send(1, "ann", ann, `{"jsonrpc":"2.0","method":"notifications/initialized"}`), "a message with which the session moves")
	// The header is for messages between nodes alone.
	send(1, "eve", eve, answer(question, "never"), passed...)
	send(0, "eve", "", answer(question, "never"), passed...)
	accepted(send(1, "eve", eve, cancel(3)), "a cancellation in another session")
	accepted(send(1, "ann", ann, answer(question, "Monday")), "an answer")
	if got := nextData(t, asked).Result.Content; len(got) != 1 || got[0].Text != "n0 Monday" {
		t.Errorf("the call that asked has %v", got)
	}
	accepted(send(1, "ann", ann, cancel(3)), "a cancellation")
	expect := func(want string) {
		t.Helper()
		select {
		case got := <-cancelled:
			if got != want {
				t.Errorf("the call %q is cancelled, want %q", got, want)
			}
		case <-time.After(patience):
			t.Fatalf("the call %q goes on", want)
		}
	}
	expect("n0 once")
	w = nodes[1].send(t, ctx, "GET", "ann", ann, "", "Last-Event-ID", last)
	resumed := bufio.NewScanner(w.Body)
	again := nextData(t, resumed)
	accepted(send(1, "ann", ann, answer(again.ID, "Friday")), "an answer on a stream that was resumed")
	if got := nextData(t, resumed).Result.Content; len(got) != 1 || got[0].Text != "n0 Friday" {
		t.Errorf("the call whose stream was resumed has %v", got)
	}
	nodes[1].Retire()
	accepted(send(2, "ann", ann, cancel(4)), "a cancellation after two moves")
	expect("n0 twice")
	select {
	case more := <-cancelled:
		t.Errorf("the call %q is cancelled too", more)
	default:
	}
}

// message is what a test reads of one.
type message struct {
	ID     json.RawMessage
	Result struct{ Content []struct{ Text string } }
}

// nextData returns the next message of an event stream.
func nextData(t *testing.T, from *bufio.Scanner) (m message) {
	t.Helper()
	for from.Scan() {
		if data, ok := strings.CutPrefix(from.Text(), "data: "); ok && data != "" {
			if err := json.Unmarshal([]byte(data), &m); err != nil {
				t.Fatal(err)
			}
			return m
		}
	}
	t.Fatalf("the stream has ended with %q", from.Text())
	return m
}

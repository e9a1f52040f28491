package cluster_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/cluster"
	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/store"
)

// eventNodes returns joined nodes that serve nothing.
func eventNodes(t *testing.T, state cluster.State, bus cluster.Bus, names ...string) []*cluster.Node {
	t.Helper()
	var list []*cluster.Node
	for _, name := range names {
		n := &cluster.Node{Name: name, State: state, Bus: bus, Handler: http.NotFoundHandler(), Logger: slog.New(slog.DiscardHandler)}
		if err := n.Join(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { n.Leave(context.Background()) })
		list = append(list, n)
	}
	return list
}

func appendEvent(t *testing.T, to store.Events, stream string, position int64, data string) {
	t.Helper()
	if err := to.Append(t.Context(), stream, position, []byte(data)); err != nil {
		t.Fatal(err)
	}
}

// followed returns what a follower gets: positions with data, and "now" behind what there was.
func followed(t *testing.T, from store.SharedEvents, stream string, position int64) (got []string) {
	t.Helper()
	for e, err := range from.Follow(t.Context(), stream, position) {
		switch {
		case err != nil:
			t.Fatal(err)
		case e.Position == 0:
			if len(got) == 0 || got[len(got)-1] != "now" { // it may come again
				got = append(got, "now")
			}
		default:
			got = append(got, fmt.Sprint(e.Position, string(e.Data)))
		}
	}
	return got
}

// A node finds the events of another one, of one stream alone, in order and once each, also those that come later, until that node
// forgets the stream or ends.
func TestEventsAtAnotherNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(cluster.Memory)
		nodes := eventNodes(t, m, m, "n0", "n1")
		one, two := nodes[0].Events(), nodes[1].Events()
		a, b, c := one.Name("a"), one.Name("b"), one.Name("c")
		for i := range int64(30) {
			appendEvent(t, one, a, i+1, `{"a":1}`)
			appendEvent(t, one, b, i+1, `{"b":"<&>"}`)
			time.Sleep(20 * time.Millisecond)
		}
		time.Sleep(time.Second)
		go func() {
			time.Sleep(10 * time.Second)
			one.Append(context.Background(), a, 31, []byte(`"late"`))
			one.Append(context.Background(), b, 31, []byte(`"other"`))
			time.Sleep(10 * time.Second)
			one.Forget(context.Background(), a)
		}()
		want := []string{`28{"a":1}`, `29{"a":1}`, `30{"a":1}`, "now", `31"late"`}
		begun := time.Now()
		if got := followed(t, two, a, 27); !slices.Equal(got, want) {
			t.Errorf("followed %q, want %q", got, want)
		}
		if took := time.Since(begun); took < 20*time.Second || took > 21*time.Second {
			t.Errorf("following ended after %v, want 20 s", took)
		}
		if got := followed(t, two, "unknown", 0); !slices.Equal(got, []string{"now"}) {
			t.Errorf("of an unknown stream %q is followed", got)
		}
		go func() {
			time.Sleep(10 * time.Second)
			one.Append(context.Background(), c, 1, []byte(`"last"`))
			nodes[0].Leave(context.Background()) // at once
		}()
		if got, want := followed(t, two, c, -1), []string{"now", `1"last"`, "now"}; !slices.Equal(got, want) {
			t.Errorf("followed %q of a node that ends, want %q", got, want)
		}
		want = []string{`30{"b":"<&>"}`, `31"other"`, "now"}
		if got := followed(t, two, b, 29); !slices.Equal(got, want) {
			t.Errorf("followed %q of a node that has ended, want %q", got, want)
		}
		time.Sleep(5 * time.Minute)
		if got := followed(t, two, b, 0); !slices.Equal(got, []string{"now"}) {
			t.Errorf("after 5 minutes %q is followed", got)
		}
	})
}

// An event that is too large is told without its data, one that is not JSON, or of a stream that was not named, is not shared, and others are.
// Names of streams are not in the State. An entry that cannot be read is an error for the streams that it is about, and for no others.
func TestEventsThatAreNotShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(cluster.Memory)
		nodes := eventNodes(t, m, m, "n0", "n1")
		one, two := nodes[0].Events(), nodes[1].Events()
		large, bad, later := one.Name("large"), one.Name("bad"), one.Name("later")
		appendEvent(t, one, large, 1, `"`+strings.Repeat("x", 600<<10)+`"`)
		appendEvent(t, one, large, 2, `"small"`)
		appendEvent(t, one, bad, 1, "not json")
		appendEvent(t, one, "unnamed", 1, "1")
		time.Sleep(time.Second)
		for i := range int64(100) {
			appendEvent(t, one, later, i+1, "1")
		}
		time.Sleep(time.Second)
		if got := positions(t, two, large); !slices.Equal(got, []int64{1, 2}) {
			t.Errorf("of a large event and another %v are shared", got)
		}
		for e, err := range two.Follow(t.Context(), large, 0) {
			if err != nil || e.Data != nil {
				t.Errorf("a large event is %d bytes, %v", len(e.Data), err)
			}
			break
		}
		for stream, want := range map[string]int{bad: 0, "unnamed": 0, later: 100} {
			if got := positions(t, two, stream); len(got) != want {
				t.Errorf("%d events of %s, want %d", len(got), stream, want)
			}
		}
		for c, err := range m.Recent().Watch(t.Context(), "event") {
			if err != nil {
				t.Fatal(err)
			}
			if c.Key == "" {
				break
			}
			if strings.Contains(string(c.Value), "later") {
				t.Fatal("the State has the name of a stream")
			}
			newer := strings.Replace(string(c.Value), `"v":1`, `"v":2`, 1)
			if _, err := m.Recent().Put(t.Context(), c.Key, []byte(newer), c.Version, time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		appendEvent(t, one, bad, 2, `"good"`)
		time.Sleep(time.Second)
		if got := positions(t, two, bad); !slices.Equal(got, []int64{2}) {
			t.Errorf("beside entries of a newer version %v is shared", got)
		}
		for _, err := range two.Follow(t.Context(), later, 0) {
			if err == nil || !strings.Contains(err.Error(), "format 2") {
				t.Errorf("an entry of a newer version: %v", err)
			}
		}
	})
}

// positions returns those that a stream has now.
func positions(t *testing.T, from store.SharedEvents, stream string) (list []int64) {
	t.Helper()
	for e, err := range from.Follow(t.Context(), stream, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Position == 0 {
			break
		}
		list = append(list, e.Position)
	}
	return list
}

// refusing is a State that refuses some entries.
type refusing struct {
	cluster.State
	refuses func(key string) bool
}

func (r refusing) Put(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration) (uint64, error) {
	if r.refuses(key) {
		return 0, errors.New("refused")
	}
	return r.State.Put(ctx, key, value, version, ttl)
}

func (r refusing) Recent() cluster.State { return r }

// Events wait for a State that does not answer for a while.
func TestEventsWaitForTheState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(cluster.Memory)
		off := make(chan struct{}, 1) // has a value while the State takes nothing
		nodes := eventNodes(t, refusing{m, func(key string) bool { return len(off) > 0 && strings.HasPrefix(key, "event.") }}, m, "n0", "n1")
		one, two := nodes[0].Events(), nodes[1].Events()
		off <- struct{}{}
		a := one.Name("a")
		appendEvent(t, one, a, 1, `1`)
		time.Sleep(time.Minute)
		appendEvent(t, one, a, 2, `2`)
		time.Sleep(time.Minute)
		if got := positions(t, two, a); got != nil {
			t.Errorf("positions %v were shared without the State", got)
		}
		<-off
		time.Sleep(2 * time.Second)
		if got := positions(t, two, a); !slices.Equal(got, []int64{1, 2}) {
			t.Errorf("positions %v are shared, want 1 and 2", got)
		}
		if events, err := one.After(t.Context(), a, 0); len(events) != 2 || err != nil {
			t.Errorf("at its node, %q is kept: %v", events, err)
		}
	})
}

// A stream keeps its order, and those of other buckets are not held up, when the State has refused an event of it several times.
func TestEventsStayInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(cluster.Memory)
		var mu sync.Mutex
		refused, bucket := 0, "event." // of n0, once it is known; guarded by mu
		nodes := eventNodes(t, refusing{m, func(key string) bool {
			mu.Lock()
			defer mu.Unlock()
			if !strings.HasPrefix(key, bucket) || refused == 10 {
				return false
			}
			if refused++; refused == 1 {
				bucket = key[:strings.LastIndex(key, ".")]
			}
			return true
		}}, m, "n0", "n1")
		one, two := nodes[0].Events(), nodes[1].Events()
		a := one.Name("a")
		appendEvent(t, one, a, 1, `1`)
		got := make(chan []string, 1)
		go func() { got <- followed(t, two, a, 0) }()
		time.Sleep(500 * time.Millisecond) // it is refused once
		var others []string
		for i := range 20 { // which is enough for another bucket
			others = append(others, one.Name(fmt.Sprint("b", i)))
			appendEvent(t, one, others[i], 1, `1`)
		}
		for i := range 3 {
			appendEvent(t, one, a, int64(2+i), fmt.Sprint(2+i))
			time.Sleep(time.Second)
		}
		there := 0
		for _, b := range others {
			there += len(positions(t, two, b))
		}
		mu.Lock()
		if there == 0 || refused < 3 || refused == 10 {
			t.Errorf("of %d other streams %d are shared, when the State has refused %d times", len(others), there, refused)
		}
		mu.Unlock()
		time.Sleep(20 * time.Second)
		if err := one.Forget(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		if got, want := <-got, []string{"now", "11", "22", "33", "44"}; !slices.Equal(got, want) {
			t.Errorf("a node that followed the stream got %q, want %q", got, want)
		}
	})
}

// A client of 2025-11-25 resumes the stream of a call at another node, when its own has ended: it gets the messages that it has not got,
// once, and the answer, whether it was there already or comes later from a node that ends in order. A client of another session does not.
func TestStreamsOutliveNodes(t *testing.T) {
	t.Parallel()
	m := new(cluster.Memory)
	var nodes []member
	steps := [3]chan string{make(chan string), make(chan string), make(chan string)} // of calls
	for i := range 2 {
		nodes = append(nodes, newMember(t, m, i, func(n *cluster.Node, srv *mcp.Server) {
			srv.HTTP.Sessions, srv.HTTP.Events = n.Sessions("/"), n.Events()
			mcp.AddTool(srv, mcp.Tool{Name: "work"}, func(ctx context.Context, in struct {
				N int `json:"n"`
			}) (string, error) {
				done := 0
				for s := range steps[in.N] {
					if s == "end" {
						break
					}
					done++
					mcp.Progress(ctx, float64(done), 0, s)
				}
				return fmt.Sprint("done ", done), nil
			})
		}))
	}
	send := func(node int, method, user, session, last, body string) *http.Response {
		t.Helper()
		var header []string
		if last != "" {
			header = []string{"Last-Event-ID", last}
		}
		return nodes[node].send(t, t.Context(), method, user, session, body, header...)
	}
	open := func(user string) string {
		w := send(0, "POST", user, "", "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
		return w.Header.Get("Mcp-Session-Id")
	}
	type event struct {
		id      string
		message struct {
			ID     json.RawMessage
			Params struct{ Message string }
			Result struct{ Content []struct{ Text string } }
			Error  struct{ Message string }
		}
	}
	next := func(from *bufio.Scanner) (e event, ok bool) {
		t.Helper()
		for from.Scan() {
			line := from.Text()
			if id, ok := strings.CutPrefix(line, "id: "); ok {
				e.id = id
			}
			if data, ok := strings.CutPrefix(line, "data: "); ok && data != "" {
				if err := json.Unmarshal([]byte(data), &e.message); err != nil {
					t.Fatal(err)
				}
				return e, true
			}
		}
		return e, false
	}
	const work = `{"jsonrpc":"2.0","id":%[1]d,"method":"tools/call","params":{"name":"work","arguments":{"n":%[1]d},"_meta":{"progressToken":1}}}`
	ann, eve := open("ann"), open("eve")
	call := func(id int) (last string) {
		go func() { steps[id] <- "step 1" }() // with which the answer begins
		w := send(0, "POST", "ann", ann, "", fmt.Sprintf(work, id))
		from := bufio.NewScanner(w.Body)
		for i := range 2 {
			if i == 1 {
				steps[id] <- "step 2"
			}
			e, ok := next(from)
			if !ok || e.message.Params.Message != fmt.Sprint("step ", i+1) {
				t.Fatalf("event %d is %+v, %v", i, e, ok)
			}
			if i == 0 {
				last = e.id // the client loses what follows
			}
		}
		w.Body.Close()
		return last
	}
	ended, running, lost := call(0), call(1), call(2)
	steps[0] <- "step 3"
	steps[0] <- "end"
	outside := send(0, "GET", "ann", ann, "", "") // messages outside of calls
	from := bufio.NewScanner(outside.Body)
	var ids []string
	for i := range 3 {
		mcp.AddTool(nodes[0].srv, mcp.Tool{Name: fmt.Sprint("new", i)}, func(context.Context, struct{}) (string, error) { return "", nil })
		e, ok := next(from)
		if !ok {
			t.Fatal("a stream outside of calls has ended")
		}
		ids = append(ids, e.id)
	}
	outside.Body.Close()
	time.Sleep(300 * time.Millisecond)
	nodes[0].Retire() // the other one has the session with its next request
	texts := func(user, session, last string) (status int, got []string) {
		w := send(1, "GET", user, session, last, "")
		for from := bufio.NewScanner(w.Body); ; {
			e, ok := next(from)
			switch {
			case !ok:
				return w.StatusCode, got
			case e.message.Params.Message != "":
				got = append(got, e.message.Params.Message)
			case e.message.Error.Message != "":
				got = append(got, e.message.Error.Message)
			case len(e.message.Result.Content) > 0:
				got = append(got, e.message.Result.Content[0].Text)
			}
		}
	}
	const unknown = "the process that ran this request has ended; whether it has done what was asked is not known"
	follow := func(last string) <-chan []string {
		result := make(chan []string, 1)
		go func() {
			_, got := texts("ann", ann, last)
			result <- got
		}()
		return result
	}
	ofRunning, ofLost := follow(running), follow(lost)
	time.Sleep(200 * time.Millisecond)
	steps[1] <- "later"
	steps[1] <- "end"
	// Its function has got "end", and must share the answer before the node leaves.
	if got, want := <-ofRunning, []string{"step 2", "later", "done 3"}; !slices.Equal(got, want) {
		t.Errorf("of a call that has ended since the client gets %q, want %q", got, want)
	}
	nodes[0].Leave(t.Context())
	if got, want := <-ofLost, []string{"step 2", unknown}; !slices.Equal(got, want) {
		t.Errorf("of a call whose node has ended the client gets %q, want %q", got, want)
	}
	outside = send(1, "GET", "ann", ann, ids[0], "")
	from = bufio.NewScanner(outside.Body)
	for _, want := range ids[1:] {
		if e, ok := next(from); e.id != want || !ok {
			t.Errorf("outside of calls the client gets event %q, want %q", e.id, want)
		}
	}
	mcp.AddTool(nodes[1].srv, mcp.Tool{Name: "newer"}, func(context.Context, struct{}) (string, error) { return "", nil })
	if e, ok := next(from); !ok || slices.Contains(ids, e.id) || e.id == "" {
		t.Errorf("then the stream goes on with %q, %v", e.id, ok)
	}
	outside.Body.Close()
	if _, got := texts("ann", ann, ended); !slices.Equal(got, []string{"step 2", "step 3", "done 3"}) {
		t.Errorf("of a call that had ended the client gets %q", got)
	}
	if _, got := texts("eve", eve, ended); !slices.Equal(got, []string{unknown}) {
		t.Errorf("a client of another session gets %q", got)
	}
	close(steps[2])
}

// watched counts the watches of events.
type watched struct {
	*cluster.Memory
	all, open atomic.Int32
}

func (w *watched) Recent() cluster.State { return watchedRecent{w.Memory.Recent(), w} }

type watchedRecent struct {
	cluster.State
	count *watched
}

func (w watchedRecent) Watch(ctx context.Context, prefix string) iter.Seq2[cluster.Change, error] {
	return func(yield func(cluster.Change, error) bool) {
		w.count.all.Add(1)
		w.count.open.Add(1)
		defer w.count.open.Add(-1)
		for c, err := range w.State.Watch(ctx, prefix) {
			if !yield(c, err) {
				return
			}
		}
	}
}

// All that follow streams share the watches of a node, however many come, also when the process of the streams ends; the last events reach each. Watches
// that nobody uses end.
func TestFollowersShareWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &watched{Memory: new(cluster.Memory)}
		nodes := eventNodes(t, m, m, "n0", "n1")
		one, two := nodes[0].Events(), nodes[1].Events()
		streams := long.OrRaced(400, 40)
		got := make([][]string, streams)
		var following sync.WaitGroup
		for i := range streams {
			name := one.Name(fmt.Sprint("s", i))
			appendEvent(t, one, name, 1, `1`)
			appendEvent(t, one, name, 2, `2`)
			following.Go(func() {
				time.Sleep(time.Second + time.Duration(i)*time.Millisecond)
				got[i] = followed(t, two, name, 1)
			})
			go func() {
				time.Sleep(5 * time.Second)
				one.Append(context.Background(), name, 3, []byte(`3`))
			}()
		}
		time.Sleep(5*time.Second + 10*time.Millisecond)
		nodes[0].Leave(context.Background()) // at once
		following.Wait()
		for i, list := range got {
			if len(list) == 0 || list[0] != "22" || !slices.Contains(list, "33") || list[len(list)-1] != "now" {
				t.Fatalf("stream %d is followed as %q, want events 2 and 3 with their data, and what there is now", i, list)
			}
		}
		if n := m.all.Load(); n > 8 {
			t.Errorf("%d streams are followed with %d watches, want 8", streams, n)
		}
		time.Sleep(10 * time.Second)
		if n := m.open.Load(); n != 0 {
			t.Errorf("%d watches are left", n)
		}
	})
}

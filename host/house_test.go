package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/mcp"
)

// A visitor goes through a house of many rooms, one call a room. Each room has an amount and the key
// for the next one, so that the visitor needs what the rooms before have said. All that it knows is in
// the request: the task, its last summary, and the results since.

const (
	houseWindow = 20_000 // tokens of the visitor's window
	codebook    = "CODEBOOK: blue is seven, red is nine."
)

func keyOf(room int) string { return fmt.Sprintf("k%d", room*7919%10007) }
func amountOf(room int) int { return room * 31 % 97 }

// known is what the visitor knows.
type known struct {
	Room, Sum, Left int
	Key             string
}

// visitor is the model.
type visitor struct {
	t testing.TB

	mu        sync.Mutex
	faults    *rand.Rand // guarded by mu
	asked     int        // requests; guarded by mu
	summaries int        // guarded by mu
	seen      map[string]int
	rejects   bool // the next long request is rejected as too long; guarded by mu
	repeats   bool // the visitor leaves room 20 a second time; guarded by mu
}

func (m *visitor) Info() model.Info {
	return model.Info{Name: "fake/visitor", Window: houseWindow, Images: true}
}

var (
	saysRoom = regexp.MustCompile(`^room (\d+): amount (\d+), key (\w+)`)
	saysTask = regexp.MustCompile(`until room (\d+)`)
	saysLeft = regexp.MustCompile(`left room (\d+)`)
)

// read returns what a request tells: what is known, the last room of the task, and the last result.
func (m *visitor) read(req *model.Request) (k known, until int, last string) {
	for _, msg := range req.Messages {
		for _, p := range msg.Parts {
			if _, state, ok := strings.Cut(p.Text, "STATE "); ok {
				if err := json.Unmarshal([]byte(state), &k); err != nil {
					m.t.Errorf("the summary is %q", p.Text)
				}
			}
			if found := saysTask.FindStringSubmatch(p.Text); found != nil {
				until, _ = strconv.Atoi(found[1])
			}
			if p.Result == nil {
				continue
			}
			last = (&model.Message{Parts: p.Result.Parts}).Text()
			if found := saysLeft.FindStringSubmatch(last); found != nil {
				k.Left, _ = strconv.Atoi(found[1])
			}
			if found := saysRoom.FindStringSubmatch(last); found != nil {
				room, _ := strconv.Atoi(found[1])
				amount, _ := strconv.Atoi(found[2])
				switch {
				case room == k.Room+1:
					k = known{room, k.Sum + amount, k.Left, found[3]}
				case room > k.Room:
					m.t.Errorf("request %d: after room %d the visitor is told of room %d", m.asked, k.Room, room)
				}
			}
		}
	}
	return k, until, last
}

// fault returns the error of a request, by chance.
func (m *visitor) fault(summary bool, size int) *model.Error {
	fail := func(kind model.Kind, after time.Duration) *model.Error {
		m.seen[string(kind)]++
		return &model.Error{Kind: kind, Model: "fake/visitor", Message: "a fault of the test", After: after}
	}
	switch n := m.faults.IntN(40); {
	case m.rejects && size > houseWindow/3 && !summary:
		m.rejects = false
		return fail(model.TooLong, 0)
	case n == 0:
		return fail(model.Limited, 20*time.Second)
	case n == 1:
		return fail(model.Overloaded, 0)
	case n == 2:
		return fail(model.Unavailable, 0)
	case summary && m.summaries%4 == 1:
		m.summaries++
		return fail(model.Rejected, 0)
	}
	return nil
}

func (m *visitor) Generate(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Response, error) {
	select {
	case <-time.After(40 * time.Second): // it thinks
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked++
	paired(m.t, req.Messages)
	text, images := "", 0
	for _, msg := range req.Messages {
		for _, p := range msg.Parts {
			if text += p.Text; p.Result != nil {
				text += (&model.Message{Parts: p.Result.Parts}).Text()
			}
			if p.Media != nil {
				images++
			}
		}
	}
	size := len(text)/4 + 1600*images
	if size > houseWindow {
		m.t.Errorf("request %d has %d tokens, more than the window", m.asked, size)
	}
	if strings.Count(text, codebook) != 1 || images != 1 {
		m.t.Errorf("request %d has the codebook %d times, and %d images", m.asked, strings.Count(text, codebook), images)
	}
	summary := strings.HasSuffix(text, "Write the summary alone.")
	k, until, last := m.read(req)
	res := &model.Response{Message: model.Message{Role: model.Assistant}, Stop: model.StopEnd, Usage: model.Usage{Input: int64(size), Output: 20}}
	if err := m.fault(summary, size); err != nil {
		if err.Kind == model.Unavailable { // in the middle of an answer
			emit(model.Delta{Text: "I go"})
			res.Message.Parts = []model.Part{{Text: "I go"}}
			return res, err
		}
		return nil, err
	}
	call := func(name, args string, a ...any) {
		res.Stop = model.StopCalls
		res.Message.Parts = append(res.Message.Parts, model.Part{Call: &model.Call{ID: fmt.Sprint("c", m.asked), Name: "house_" + name, Arguments: fmt.Appendf(nil, args, a...)}})
	}
	say := func(text string) { res.Message.Parts = []model.Part{{Text: text}} }
	switch {
	case summary:
		m.summaries++
		state, _ := json.Marshal(k)
		say("I am on my way. STATE " + string(state))
	case until == 0:
		say("Noted.")
	case strings.Contains(last, "did not allow"):
		m.seen["denied"]++
		call("visit", `{"room":%d,"key":%q}`, k.Room+1, k.Key)
	case m.repeats && k.Room >= 90: // it does not know any more that it has left it
		m.repeats = false
		call("leave", `{"room":20}`)
	case k.Room%20 == 0 && k.Room > 0 && k.Left != k.Room && !strings.Contains(last, "Outcome unknown"):
		call("leave", `{"room":%d}`, k.Room)
	case k.Room >= until:
		say(fmt.Sprintf("Room %d, and %d together.", k.Room, k.Sum))
	default:
		call("visit", `{"room":%d,"key":%q}`, k.Room+1, k.Key)
	}
	return res, nil
}

// house is the server.
type house struct {
	mu     sync.Mutex
	faults *rand.Rand  // guarded by mu
	left   map[int]int // how many times each room was left; guarded by mu
	failed int         // guarded by mu
}

func (s *house) server() *mcp.Server {
	srv := &mcp.Server{Name: "house", Version: "1"}
	mcp.AddTool(srv, mcp.Tool{Name: "visit", Annotations: &mcp.ToolAnnotations{Idempotent: ptr(true)}}, func(ctx context.Context, in struct {
		Room int    `json:"room"`
		Key  string `json:"key"`
	}) (string, error) {
		if in.Room > 1 && in.Key != keyOf(in.Room-1) {
			return "", fmt.Errorf("%q does not open room %d", in.Key, in.Room)
		}
		s.mu.Lock()
		fault, much := s.faults.IntN(20), s.faults.IntN(5000)
		if fault < 2 {
			s.failed++
		}
		s.mu.Unlock()
		switch fault {
		case 0:
			return "", errors.New("the door is stuck; try again")
		case 1:
			<-ctx.Done() // silent until it is cancelled
			return "", context.Cause(ctx)
		}
		return fmt.Sprintf("room %d: amount %d, key %s\n%s", in.Room, amountOf(in.Room), keyOf(in.Room), strings.Repeat("dust ", much/5)), nil
	})
	mcp.AddTool(srv, mcp.Tool{Name: "leave"}, func(ctx context.Context, in struct {
		Room int `json:"room"`
	}) (string, error) {
		s.mu.Lock()
		s.left[in.Room]++
		s.mu.Unlock()
		if in.Room == 20 { // it is done, and nobody hears of it
			<-ctx.Done()
			return "", context.Cause(ctx)
		}
		return fmt.Sprintf("left room %d", in.Room), nil
	})
	return srv
}

// A conversation of 200 steps over hours, many times as long as the window, with a provider and tools
// that fail, and a program that ends in the middle of it, comes to the right end: the model is told
// all that it needs in every request, and what the person attached and allowed stays. A call whose
// outcome is unknown is not made again, however much was summarised since.
func TestLongConversation(t *testing.T) {
	rooms := long.Or(1000, 200)
	for seed := range uint64(long.Or(8, 2)) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { longConversation(t, seed, rooms, false) })
		})
		t.Run(fmt.Sprint("forgets, seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { longConversation(t, seed, rooms, true) })
		})
	}
}

func longConversation(t *testing.T, seed uint64, rooms int, forgets bool) {
	m := &visitor{t: t, faults: rand.New(rand.NewPCG(seed, 1)), seen: map[string]int{}, rejects: true, repeats: true}
	s := &house{faults: rand.New(rand.NewPCG(seed, 2)), left: map[int]int{}}
	srv := inMemory("house", s.server())
	srv.Trusted = true
	asked, doubted := 0, 0
	h := &host.Host{
		Model: model.Retry(m, nil), Limits: host.Limits{Steps: rooms * 2, CallTimeout: time.Minute},
		Person: approver{approve: func(_ context.Context, a *host.Approval) (host.Verdict, error) {
			if a.Doubt != "" {
				doubted++
				return host.Verdict{Answer: host.Deny, Reason: "it is left already"}, nil
			}
			asked++
			return host.Verdict{Answer: host.AllowConversation}, nil
		}},
	}
	defer h.Close()
	added(t, h, srv)
	synctest.Wait()

	began := time.Now()
	var kept []host.Entry
	d := &diary{}
	begin := func() *host.Conversation {
		c := h.NewConversation()
		c.Entries, c.OnEvent, c.Forget = append([]host.Entry(nil), kept...), d.note, forgets
		if forgets {
			return c
		}
		c.Keep = func(_ context.Context, at int, e *host.Entry) error {
			if kept = kept[:at]; e != nil {
				kept = append(kept, *e)
			}
			return nil
		}
		return c
	}
	c := begin()
	if _, err := c.Send(t.Context(), "Keep this.", model.Part{Text: codebook}, model.Part{Media: &model.Media{MIME: "image/png", Data: []byte("png")}}); err != nil {
		t.Fatal(err)
	}
	steps, sum := 0, 0
	for i := range 4 {
		until := rooms * (i + 1) / 4
		if i == 2 {
			if forgets {
				kept = c.Snapshot()
			}
			c = begin() // as another process does
		}
		r, err := c.Send(t.Context(), fmt.Sprintf("Go on until room %d.", until))
		if err != nil {
			t.Fatalf("until room %d: Send = %+v, %v", until, r, err)
		}
		for room := until - rooms/4 + 1; room <= until; room++ {
			sum += amountOf(room)
		}
		if want := fmt.Sprintf("Room %d, and %d together.", until, sum); r.Text != want {
			t.Fatalf("the answer is %q, want %q", r.Text, want)
		}
		steps += r.Steps
	}
	summaries := d.of(host.Summarised)
	took := time.Since(began)
	t.Logf("%d steps in %v, %d summaries, faults %v, %d of the server", steps, took, len(summaries), m.seen, s.failed)
	if steps < rooms || took < 2*time.Hour || len(summaries) < rooms/40 {
		t.Errorf("%d steps in %v with %d summaries", steps, took, len(summaries))
	}
	for _, e := range summaries {
		if e.Before <= e.After || e.After > houseWindow/2 || e.Before > houseWindow {
			t.Errorf("a summary says %d tokens, and then %d", e.Before, e.After)
		}
	}
	for _, kind := range []model.Kind{model.Limited, model.Overloaded, model.Unavailable, model.Rejected, model.TooLong, "denied"} {
		if m.seen[string(kind)] == 0 {
			t.Errorf("the fault %q did not happen", kind)
		}
	}
	if asked != 4 { // two tools, before and after the program began anew
		t.Errorf("the person was asked for %d approvals, want 4", asked)
	}
	if doubted != 1 {
		t.Errorf("the person was asked %d times about the call in doubt", doubted)
	}
	for room := 20; room <= rooms; room += 20 {
		if s.left[room] != 1 {
			t.Errorf("room %d was left %d times", room, s.left[room])
		}
	}
	if n := len(c.Snapshot()); n < steps == !forgets {
		t.Errorf("there are %d entries of %d steps", n, steps)
	}
	if s.failed == 0 {
		t.Error("the server has not failed")
	}
}

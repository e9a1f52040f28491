package interop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// A wire is a connection of a client and a server.
type wire string

const (
	stdio wire = "stdio" // the server is a child process of the client
	web   wire = "http"  // Streamable HTTP on loopback
)

// The revisions that a peer can be set to speak. In auto the client negotiates.
const (
	v2024_11_05 = "2024-11-05"
	v2025_03_26 = "2025-03-26"
	v2025_06_18 = "2025-06-18"
	v2025_11_25 = "2025-11-25"
	v2026_07_28 = "2026-07-28"
	auto        = "auto"
)

// A report is the result of a client's probe of a server. The .mjs clients print the same
// members.
type report struct {
	Revision  string    `json:"revision"`
	Server    string    `json:"server"`
	Tools     []string  `json:"tools"`
	Resources []string  `json:"resources"`
	Prompts   []string  `json:"prompts"`
	Echo      string    `json:"echo"`
	Read      string    `json:"read"`
	Item      string    `json:"item"`
	Prompt    string    `json:"prompt"`
	Ask       string    `json:"ask"`
	Twice     string    `json:"twice"`
	Sample    string    `json:"sample"`
	Progress  []float64 `json:"progress"`
	Log       string    `json:"log"`
	Changed   bool      `json:"changed"`
	Cancelled bool      `json:"cancelled"`

	// Questions during another call.
	AskBeside    string `json:"askBeside"`
	SampleBeside string `json:"sampleBeside"`

	Errors map[string]string `json:"errors"`
}

// goodReport is the report that every client must make of every server.
func goodReport(server, revision string) report {
	return report{
		Revision:  revision,
		Server:    server,
		Tools:     []string{"ask", "echo", "grow", "sample", "steps", "twice", "wait", "waits"},
		Resources: []string{"test://greeting"},
		Prompts:   []string{"greet"},
		Echo:      "plug",
		Read:      "hello",
		Item:      "item 7",
		Prompt:    "Hello Ada",
		Ask:       "hello Ada",
		Twice:     "Ada and Ada",
		Sample:    "the model said pong",
		Progress:  []float64{1, 2, 3},
		Log:       "working",
		Changed:   true,
		Cancelled: true,

		AskBeside:    "hello Ada",
		SampleBeside: "the model said pong",

		Errors: map[string]string{},
	}
}

// A caller is a connected client of a Go SDK, with a common interface. Names and texts come
// back in the order the server gave them.
type caller struct {
	server, revision string

	tools, resources, prompts func(ctx context.Context) ([]string, error)

	// call returns the text of the result; a tool error is an error. progress
	// may be nil.
	call   func(ctx context.Context, tool string, args map[string]any, progress func(float64)) (string, error)
	read   func(ctx context.Context, uri string) (string, error)
	prompt func(ctx context.Context, name string, args map[string]string) (string, error)

	heard *heard
}

// heard holds the unsolicited messages of a client.
type heard struct {
	logs    chan string
	changes chan struct{}
}

func newHeard() *heard {
	return &heard{logs: make(chan string, 64), changes: make(chan struct{}, 64)}
}

// log and changed never block: a client's reader calls them.
func (h *heard) log(text string) {
	select {
	case h.logs <- text:
	default:
	}
}

func (h *heard) changed() {
	select {
	case h.changes <- struct{}{}:
	default:
	}
}

// stepLimit bounds each question.
const stepLimit = 10 * time.Second

// behind is c restricted to one server behind a gateway: the one with a prefix. Resources do
// not have prefixes; all servers of the world have the same.
func (c caller) behind(prefix string) *caller {
	own := func(list func(context.Context) ([]string, error)) func(context.Context) ([]string, error) {
		return func(ctx context.Context) (names []string, err error) {
			all, err := list(ctx)
			for _, name := range all {
				if own, ok := strings.CutPrefix(name, prefix); ok {
					names = append(names, own)
				}
			}
			return names, err
		}
	}
	call, prompt := c.call, c.prompt
	c.tools, c.prompts = own(c.tools), own(c.prompts)
	c.call = func(ctx context.Context, tool string, args map[string]any, progress func(float64)) (string, error) {
		return call(ctx, prefix+tool, args, progress)
	}
	c.prompt = func(ctx context.Context, name string, args map[string]string) (string, error) {
		return prompt(ctx, prefix+name, args)
	}
	return &c
}

// probe asks everything except the steps that the target skips. It is probe.mjs in Go.
func probe(ctx context.Context, c *caller, to target) report {
	skip := to.skip
	c = c.behind(to.prefix)
	r := report{Revision: c.revision, Server: c.server, Errors: map[string]string{}}
	step := func(name string, f func(ctx context.Context) error) {
		if slices.Contains(skip, name) {
			return
		}
		ctx, cancel := context.WithTimeout(ctx, stepLimit)
		defer cancel()
		if err := f(ctx); err != nil {
			r.Errors[name] = err.Error()
		}
	}
	list := func(name string, to *[]string, f func(context.Context) ([]string, error)) {
		step(name, func(ctx context.Context) (err error) {
			*to, err = f(ctx)
			slices.Sort(*to)
			return err
		})
	}
	text := func(name string, to *string, f func(context.Context) (string, error)) {
		step(name, func(ctx context.Context) (err error) {
			*to, err = f(ctx)
			return err
		})
	}
	tool := func(name string, args map[string]any) func(context.Context) (string, error) {
		return func(ctx context.Context) (string, error) { return c.call(ctx, name, args, nil) }
	}

	list("tools", &r.Tools, c.tools)
	list("resources", &r.Resources, c.resources)
	list("prompts", &r.Prompts, c.prompts)
	text("echo", &r.Echo, tool("echo", map[string]any{"message": "plug"}))
	text("read", &r.Read, func(ctx context.Context) (string, error) { return c.read(ctx, "test://greeting") })
	text("item", &r.Item, func(ctx context.Context) (string, error) { return c.read(ctx, "test://item/7") })
	text("prompt", &r.Prompt, func(ctx context.Context) (string, error) {
		return c.prompt(ctx, "greet", map[string]string{"name": "Ada"})
	})
	text("ask", &r.Ask, tool("ask", nil))
	text("twice", &r.Twice, tool("twice", nil))
	text("sample", &r.Sample, tool("sample", nil))
	step("progress", func(ctx context.Context) error {
		seen := make(chan float64, 8)
		if _, err := c.call(ctx, "steps", nil, func(p float64) { seen <- p }); err != nil {
			return err
		}
		for len(r.Progress) < 3 { // an SDK may deliver the result before the last reports
			p, err := receive(ctx, seen, "progress")
			if err != nil {
				return err
			}
			r.Progress = append(r.Progress, p)
		}
		return nil
	})
	text("log", &r.Log, func(ctx context.Context) (string, error) {
		drain(c.heard.logs)
		if _, err := c.call(ctx, "steps", nil, nil); err != nil {
			return "", err
		}
		return receive(ctx, c.heard.logs, "log message")
	})
	step("changed", func(ctx context.Context) error {
		drain(c.heard.changes)
		if _, err := c.call(ctx, "grow", nil, nil); err != nil {
			return err
		}
		_, err := receive(ctx, c.heard.changes, "list change")
		r.Changed = err == nil
		return err
	})
	step("cancelled", func(ctx context.Context) error {
		err := cancelWait(ctx, c)
		r.Cancelled = err == nil
		return err
	})
	text("askBeside", &r.AskBeside, func(ctx context.Context) (string, error) { return beside(ctx, c, "ask") })
	text("sampleBeside", &r.SampleBeside, func(ctx context.Context) (string, error) { return beside(ctx, c, "sample") })
	return r
}

// beside calls a tool that asks a question while the waiting tool runs.
func beside(ctx context.Context, c *caller, tool string) (string, error) {
	waitCtx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	done := make(chan error, 1)
	go func() {
		_, err := c.call(waitCtx, "wait", nil, nil)
		done <- err
	}()
	if err := until(ctx, c, func(s string) bool { return s != "" && s[0] != '0' }); err != nil {
		return "", err
	}
	answer, err := c.call(ctx, tool, nil, nil)
	if err != nil {
		return "", err
	}
	giveUp()
	if err, late := receive(ctx, done, "end of the cancelled call"); late != nil {
		return "", late
	} else if err == nil {
		return "", errors.New("the cancelled call was answered")
	}
	return answer, nil
}

// cancelWait calls the waiting tool, cancels it, and checks that the server noticed.
func cancelWait(ctx context.Context, c *caller) error {
	waitCtx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	done := make(chan error, 1)
	go func() {
		_, err := c.call(waitCtx, "wait", nil, nil)
		done <- err
	}()
	if err := until(ctx, c, func(s string) bool { return s != "" && s[0] == '1' }); err != nil {
		return err
	}
	giveUp()
	if err, late := receive(ctx, done, "end of the cancelled call"); late != nil {
		return late
	} else if err == nil {
		return errors.New("the cancelled call was answered")
	}
	return until(ctx, c, func(s string) bool { return s == "0 waiting, 1 cancelled" })
}

// until polls the state of the waits until it is good: a foreign process does not notify.
func until(ctx context.Context, c *caller, good func(string) bool) error {
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		s, err := c.call(ctx, "waits", nil, nil)
		if err != nil {
			return err
		}
		if good(s) {
			return nil
		}
		if _, err := receive(ctx, tick.C, "tick"); err != nil {
			return fmt.Errorf("the waits stay at %q", s)
		}
	}
}

func receive[T any](ctx context.Context, ch <-chan T, what string) (T, error) {
	select {
	case v := <-ch:
		return v, nil
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("no %s: %w", what, ctx.Err())
	}
}

func drain[T any](ch <-chan T) {
	for len(ch) > 0 {
		<-ch
	}
}

// waitRoom counts the calls of the waiting tool in a server.
type waitRoom struct {
	mu                 sync.Mutex
	waiting, cancelled int // guarded by mu
}

// wait returns when ctx ends.
func (w *waitRoom) wait(ctx context.Context) {
	w.add(1, 0)
	<-ctx.Done()
	w.add(-1, 1)
}

func (w *waitRoom) add(waiting, cancelled int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting += waiting
	w.cancelled += cancelled
}

func (w *waitRoom) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Sprintf("%d waiting, %d cancelled", w.waiting, w.cancelled)
}

// apart keeps two messages of a server out of one read. Both TypeScript clients lose
// progress that arrives in one chunk with the result, because they handle a result at once
// and a notification only after a microtask.
func apart() { time.Sleep(20 * time.Millisecond) }

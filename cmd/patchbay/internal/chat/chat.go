package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/term"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/terminal"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Options configure a [Chat]. The zero value works, with a host that has a model.
type Options struct {
	Title string // the first line, such as the name and version of the program
	Color bool

	// Models are names for OpenModel, to be offered.
	Models []string

	// OpenModel opens a model by its name. If nil, only the host's model is available.
	OpenModel func(name string) (model.Model, error)

	// Offered returns the models that the server of the model offers that was opened last, as names for
	// OpenModel. If nil, only Models are offered.
	Offered func(context.Context) ([]string, error)

	// NoModel describes how to configure a model, if the host has none.
	NoModel string

	// System is the system prompt.
	System string

	// Begin sets up the first conversation, a new or a resumed one. If nil, it stays as it is.
	Begin func(*host.Conversation)

	// First is the first message. Empty: the person types it.
	First string

	// Memory keeps conversations. If nil, they are not kept.
	Memory Memory

	// Arguments converts words that were typed for a tool, as name=value. If nil, only a JSON object
	// is accepted.
	Arguments func(words []string, tool *mcp.Tool) (json.RawMessage, error)

	// Visit opens a page in the browser. If nil, there is no browser.
	Visit func(ctx context.Context, address string) error

	// History is the file of the input history. Empty: it is not kept.
	History string

	// Resume is the id of a conversation in Memory to continue. Empty: a new one begins, or, with
	// Choose, the person chooses one first.
	Resume string
	Choose bool

	// Bell is how a question draws attention that waits for the person: "bell" or empty, "desktop" for a
	// notification (OSC 9), "off".
	Bell string

	// Lines says that there is no terminal, and that Lines is called in place of Run. Person then
	// becomes the host's Person. If nil, nobody is asked.
	Lines  bool
	Person host.Person
}

// Memory keeps conversations and finds them again.
type Memory interface {
	// Keep keeps a conversation from now on.
	Keep(c *host.Conversation)

	// List returns the newest conversations, or those that contain words.
	List(ctx context.Context, words string) ([]Past, error)

	// Resume returns a conversation of h to continue, by its id or a prefix of it. If there is
	// none, the error wraps memory.ErrNone.
	Resume(ctx context.Context, h *host.Host, id string) (*host.Conversation, error)

	// Forget deletes a conversation by its full id, but not the one that was last passed to Keep.
	Forget(ctx context.Context, id string) error
}

// Past is a kept conversation.
type Past struct {
	ID      string
	Title   string
	Updated time.Time
	Entries int
}

// Chat is the terminal of a host, and its person.
type Chat struct {
	h      *host.Host
	o      Options
	mail   *mailbox
	models offers

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup // goroutines that the UI has started
	busy   atomic.Int32   // the number of them
}

var _ host.Person = (*Chat)(nil)

// New returns the terminal of a host. It sets h.Person, to the Chat or, with Options.Lines, to
// Options.Person, and wraps h.OnStatus, so it must be called before the host is used. Then either
// Run or Lines is called, once.
func New(h *host.Host, o Options) *Chat {
	c := &Chat{h: h, o: o, mail: newMailbox()}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	told := h.OnStatus
	h.OnStatus = func(s host.ServerStatus) {
		if told != nil {
			told(s)
		}
		c.mail.put(s)
	}
	h.Person = c
	if o.Lines {
		h.Person = o.Person
	}
	return c
}

// Write shows lines from elsewhere, such as the program's log, in the chat.
func (c *Chat) Write(p []byte) (int, error) {
	if text := strings.TrimSpace(string(p)); text != "" {
		c.mail.put(note(text))
	}
	return len(p), nil
}

// note is a line for the person.
type note string

// Approve asks the person, like the other methods of host.Person.
func (c *Chat) Approve(ctx context.Context, a *host.Approval) (host.Verdict, error) {
	return ask[host.Verdict](ctx, c, a.Server, a.Call, newApproval(a))
}

func (c *Chat) Elicit(ctx context.Context, q *host.Elicitation) (*mcp.ElicitResult, error) {
	if q.URL != "" {
		p, err := newPage(c, q)
		if err != nil {
			return nil, mcp.Errorf(jsonrpc.CodeInvalidParams, "%v", err)
		}
		return ask[*mcp.ElicitResult](ctx, c, q.Server, q.Call, p)
	}
	f, err := newForm(q)
	if err != nil {
		return nil, mcp.Errorf(jsonrpc.CodeInvalidParams, "invalid form: %v", err)
	}
	return ask[*mcp.ElicitResult](ctx, c, q.Server, q.Call, f)
}

func (c *Chat) ReviewRequest(ctx context.Context, s *host.Sampling) (*mcp.SampleRequest, error) {
	return ask[*mcp.SampleRequest](ctx, c, s.Server, s.Call, newSampleRequest(s))
}

func (c *Chat) ReviewAnswer(ctx context.Context, s *host.Sampling, r *mcp.SampleResult) (*mcp.SampleResult, error) {
	return ask[*mcp.SampleResult](ctx, c, s.Server, s.Call, newSampleAnswer(s, r))
}

// errLeft says that the person has left.
var errLeft = errors.New("the person has left")

// ask asks the person a question and waits for the answer.
func ask[T any](ctx context.Context, c *Chat, server, call string, d dialog) (T, error) {
	var none T
	q := &question{server: server, call: call, dialog: d, reply: make(chan any, 1), ctx: ctx}
	c.mail.put(q)
	select {
	case a := <-q.reply:
		if err, ok := a.(error); ok {
			return none, err
		}
		return a.(T), nil
	case <-ctx.Done():
		c.mail.put(withdrawn{q})
		return none, context.Cause(ctx)
	case <-c.ctx.Done():
		return none, errLeft
	}
}

// visit opens a page, and shows whether that worked.
func (c *Chat) visit(address string) {
	c.start(func(ctx context.Context) {
		err := errors.New("cannot open a browser")
		if c.o.Visit != nil {
			err = c.o.Visit(ctx, address)
		}
		if err != nil {
			c.mail.put(note(fmt.Sprintf("%v; the page is %s", err, address)))
		}
	})
}

// copied is text for the clipboard.
type copied string

func (c *Chat) copy(text string) { c.mail.put(copied(text)) }

// start runs f in a goroutine. Its context ends when the person leaves.
func (c *Chat) start(f func(context.Context)) {
	c.busy.Add(1)
	c.wg.Go(func() {
		defer func() {
			c.busy.Add(-1)
			c.mail.put(nil) // wakes the UI
		}()
		defer func() {
			if v := recover(); v != nil {
				c.mail.put(broken(fmt.Sprintf("%v\n%s", v, debug.Stack())))
			}
		}()
		f(c.ctx)
	})
}

// broken is a panic in such a goroutine, with its stack. The UI ends with it.
type broken string

// leaving bounds the wait for these goroutines at the end.
const leaving = 5 * time.Second

// Run runs the chat until the person leaves or ctx ends. Both in and out are terminals.
func (c *Chat) Run(ctx context.Context, in, out *os.File) (err error) {
	stop := context.AfterFunc(ctx, c.cancel)
	defer stop()
	past, err := c.past(ctx)
	if err != nil {
		return err
	}
	state, err := terminal.Raw(in, out)
	if err != nil {
		return fmt.Errorf("set up the terminal: %w", err)
	}
	p := newPainter(out)
	u := newUI(c, p, func() (int, int, error) { return term.GetSize(int(out.Fd())) }, past)
	if runtime.GOOS != "windows" {
		u.suspend = func() {
			p.pause()
			state.Restore()
		}
	}
	u.resume = func() {
		state, _ = terminal.Raw(in, out)
		p.resume()
	}
	u.external = otherPrograms(p, in, out, func() *terminal.RawState { return state }, u.resume)
	defer func() {
		c.cancel()
		p.close()
		state.Restore()
		within(leaving, c.wg.Wait)
		if u.panicked != "" {
			panic(u.panicked)
		}
	}()
	_, err = tea.NewProgram(u, tea.WithContext(c.ctx), tea.WithInput(in), tea.WithOutput(out),
		tea.WithoutRenderer(), tea.WithoutSignalHandler()).Run()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// past returns the conversation to continue; nil: none.
func (c *Chat) past(ctx context.Context) (*host.Conversation, error) {
	if c.o.Resume == "" || c.o.Memory == nil {
		return nil, nil
	}
	return c.o.Memory.Resume(ctx, c.h, c.o.Resume)
}

// within runs f and returns after d at the latest.
func within(d time.Duration, f func()) {
	done := make(chan struct{})
	go func() { // ends with the program at the latest
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(d):
	}
}

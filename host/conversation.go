package host

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/schema"
)

// ErrNoModel says that neither the conversation nor its host has a model.
var ErrNoModel = errors.New("host: no model is configured")

// ErrBusy says that another turn of the conversation is in progress.
var ErrBusy = errors.New("host: the conversation is in the middle of a turn")

// Conversation is a conversation with a model. Its fields are set before the first Send and may be
// changed between turns. Only one turn can be in progress at a time.
type Conversation struct {
	ID      string
	Model   model.Model // nil: Host.Model
	Entries []Entry     // set it to resume a conversation; during a turn, use Snapshot to read it

	// System is the system prompt. In it, {tools} stands for the list of the offered tools, with
	// their descriptions. The instructions of servers follow it.
	System string

	// Usage and Cost are totals. Set them to resume a conversation. They include answers that Undo
	// removed and completions for servers. During a turn, use Used to read them.
	Usage model.Usage
	Cost  float64 // 0: not known

	// Schema is a JSON Schema for the last answer of each turn; Reply.Text is then JSON. If an
	// answer does not fit, the model is told why and tries again, at most twice. Nil: any text.
	Schema json.RawMessage

	// OnEvent is called for each event, in order. It must not block for long or use the
	// conversation. If nil, events are discarded.
	OnEvent func(Event)

	// Keep is called for each new entry, to store it at index at. If at is not the end of what is
	// stored, the entries from at on are replaced. A nil entry only truncates there; Keep is called
	// so at the end of each turn too, when usage is final. Keep may call Snapshot and Used. If it
	// fails, the conversation notes the error and goes on. If nil, nothing is stored.
	Keep func(ctx context.Context, at int, e *Entry) error

	h       *Host
	busy    chan struct{} // capacity 1: held by the turn in progress
	telling sync.Mutex    // orders events
	long    longTexts
	beside  atomic.Int32 // number of results that share the room of one message

	mu       sync.Mutex               // held to change Entries, Usage and Cost
	sessions map[*server]*mcp.Session // guarded by mu
	allowed  map[string]bool          // tools allowed in this conversation, by grantOf; guarded by mu
	doubts   map[string]string        // why calls must not be repeated without asking, by callKey; nil before recall; guarded by mu
	turn     int                      // guarded by mu
	step     int                      // guarded by mu
	asides   model.Usage              // usage of completions for servers, not billed yet; guarded by mu
	extra    float64                  // cost of asides; guarded by mu
	left     trimmed                  // guarded by mu
	places   map[string]int           // order of offered tools, by name; guarded by mu
	found    []string                 // tools to offer if there are too many, the newest last; guarded by mu
}

// NewConversation returns a new conversation with a random ID.
func (h *Host) NewConversation() *Conversation {
	return &Conversation{
		ID: strings.ToLower(rand.Text()[:10]), h: h, busy: make(chan struct{}, 1),
		allowed: map[string]bool{}, places: map[string]int{},
	}
}

// Snapshot returns a copy of the current entries. It may be called at any time.
func (c *Conversation) Snapshot() []Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.Entries)
}

// Used returns the usage and its cost so far. It may be called at any time.
func (c *Conversation) Used() (model.Usage, float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Usage, c.Cost
}

// use adds to Usage and Cost.
func (c *Conversation) use(u model.Usage, cost float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Usage.Add(u)
	c.Cost += cost
}

// Reply is the result of a turn.
type Reply struct {
	Text  string // of the last answer
	Steps int
	Usage model.Usage // of the answers, and of completions that servers requested
	Cost  float64     // of Usage; 0: not known
	Stop  model.Stop
	Early Early // why the host ended the turn before the model did; empty: it did not
}

// Early is the reason why the host ended a turn: it told the model to answer with what it had.
type Early string

const (
	TooManySteps Early = "steps"   // the turn reached Limits.Steps
	NoProgress   Early = "repeats" // the model kept repeating a call that had the same result
)

// Errors of a turn.
var (
	// ErrSteps says that the model gave no answer after it reached Limits.Steps.
	ErrSteps = errors.New("host: the model has taken the maximum number of steps")

	// ErrSchema says that the answer does not fit Conversation.Schema.
	ErrSchema = errors.New("host: the answer does not fit the schema")
)

// Send sends a message to the model and makes the calls that it asks for, until it answers.
//
// The text is what a person wrote. A mention @server:uri attaches a resource. A text that begins
// with /server:prompt stands for the messages of that prompt, with arguments as in "/server:prompt
// name=value other="two words"". A mention #tool makes the model begin with that tool, named as in
// [Tool] or as server/tool. Mentions of unknown servers are plain text. Use more for content that
// no person wrote, because it is never searched for mentions.
//
// The conversation can always go on afterwards: each call in it has a result. The error is
// ErrNoModel, ErrBusy, ErrSteps, ErrSchema, a *model.Error, the cause of ctx, ErrClosed after
// [Host.Close], or says that Schema is not valid or that something mentioned cannot be had. If the
// turn did not begin, as with ErrNoModel, ErrBusy and the last two, nothing was said and the reply
// is nil. Otherwise the reply holds what there was, even beside an error.
func (c *Conversation) Send(ctx context.Context, text string, more ...model.Part) (*Reply, error) {
	m := c.model()
	if m == nil {
		return nil, ErrNoModel
	}
	fitting, err := c.validator()
	if err != nil {
		return nil, err
	}
	ctx, done, err := c.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	said, err := c.compose(ctx, text, more)
	if err != nil {
		return nil, orClosed(ctx, err)
	}
	c.nextTurn()
	for _, message := range said.messages {
		c.add(ctx, Entry{Message: message})
	}
	t := &turn{c: c, m: m, r: &Reply{}, fitting: fitting, insisted: said.tools}
	return t.r, c.ended(ctx, t.r, t.run(ctx))
}

// model returns the model that answers, or nil.
func (c *Conversation) model() model.Model {
	if c.Model != nil {
		return c.Model
	}
	return c.h.Model
}

func (c *Conversation) validator() (*schema.Validator, error) {
	if c.Schema == nil {
		return nil, nil
	}
	v, err := schema.Compile(c.Schema)
	if err != nil {
		return nil, fmt.Errorf("schema of the answer: %w", err)
	}
	return v, nil
}

// begin starts a turn, which lasts until done is called. Its context ends when the host is closed.
func (c *Conversation) begin(ctx context.Context) (of context.Context, done func(), err error) {
	c.h.start()
	if c.h.talking.Err() != nil {
		return nil, nil, ErrClosed
	}
	free, err := c.hold()
	if err != nil {
		return nil, nil, err
	}
	of, end := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.h.talking, func() { end(ErrClosed) })
	return of, func() { stop(); end(nil); free() }, nil
}

// hold keeps turns from beginning until free is called.
func (c *Conversation) hold() (free func(), err error) {
	select {
	case c.busy <- struct{}{}:
		return func() { <-c.busy }, nil
	default:
		return nil, ErrBusy
	}
}

// orClosed returns the error of a turn with this context: ErrClosed if Close has ended it.
func orClosed(ctx context.Context, err error) error {
	if err != nil && context.Cause(ctx) == ErrClosed {
		return ErrClosed
	}
	return err
}

func (c *Conversation) nextTurn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.Entries); n > 0 {
		c.turn = max(c.turn, c.Entries[n-1].Turn)
	}
	c.turn++
	c.step = 0
}

// ended reports the end of a turn.
func (c *Conversation) ended(ctx context.Context, r *Reply, err error) error {
	err = orClosed(ctx, err)
	c.bill(r)
	c.keep(ctx, len(c.Entries), nil)
	e := Event{Kind: Ended, Text: r.Text, Usage: &r.Usage, Cost: r.Cost, Early: r.Early}
	if err != nil {
		e.Error = err.Error()
	}
	c.tell(e)
	return err
}

// add appends an entry and passes it to Keep.
func (c *Conversation) add(ctx context.Context, e Entry) {
	c.mu.Lock()
	e.Time, e.Turn = time.Now(), c.turn
	c.Entries = append(c.Entries, e)
	at := len(c.Entries) - 1
	c.mu.Unlock()
	c.keep(ctx, at, &e)
}

func (c *Conversation) keep(ctx context.Context, at int, e *Entry) {
	if c.Keep == nil {
		return
	}
	if err := c.Keep(context.WithoutCancel(ctx), at, e); err != nil {
		c.tell(Event{Kind: Noted, Text: "store the conversation: " + err.Error()})
	}
}

// tell passes an event to OnEvent.
func (c *Conversation) tell(e Event) {
	if c.OnEvent == nil {
		return
	}
	c.telling.Lock()
	defer c.telling.Unlock()
	c.mu.Lock()
	e.Time, e.Turn, e.Step = time.Now(), c.turn, c.step
	c.mu.Unlock()
	c.OnEvent(e)
}

// Undo removes the last turn and returns what the person said in it. It returns ErrBusy during a
// turn, and an error if there is no turn.
func (c *Conversation) Undo(ctx context.Context) (string, error) {
	done, err := c.hold()
	if err != nil {
		return "", err
	}
	defer done()
	c.recall(c.h.listedTools(ctx, 0, c.h.enabled), 0) // calls of the removed turn may have run
	c.mu.Lock()
	if len(c.Entries) == 0 {
		c.mu.Unlock()
		return "", errors.New("nothing to undo")
	}
	at := c.turnStartLocked()
	said := c.Entries[at].Said()
	c.Entries, c.left = c.Entries[:at:at], trimmed{} // there is room again for what was left out
	c.mu.Unlock()
	c.keep(ctx, at, nil)
	return said, nil
}

// summaryPrompt asks for a summary.
const summaryPrompt = "Write a summary of this conversation that takes its place, for yourself: what the person wants, what was done and decided, " +
	"facts, names, identifiers and numbers that may be needed, and what is still open. Write the summary alone."

// Summarise lets the model write a summary of the conversation, which replaces the earlier entries
// in later requests. The entries stay as they are: the summary is one more, and Undo removes it.
// The errors are those of Send.
func (c *Conversation) Summarise(ctx context.Context) (*Reply, error) {
	m := c.model()
	if m == nil {
		return nil, ErrNoModel
	}
	ctx, done, err := c.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	if len(c.Entries) == 0 {
		return nil, errors.New("there is nothing to summarise")
	}
	c.nextTurn()
	t := &turn{c: c, m: m, r: &Reply{}}
	res, err := t.ask(ctx, model.Choice{Mode: "none"}, summaryPrompt)
	if err == nil && strings.TrimSpace(res.Message.Text()) == "" {
		err = errors.New("the model has written no summary")
	}
	if err == nil {
		text := "[What was said so far, summarised by you:]\n" + res.Message.Text()
		c.add(ctx, Entry{Message: marked(mark{Host: true, Summary: true}, model.Part{Text: text}), Model: res.Model, Usage: res.Usage, Cost: m.Info().Price.Of(res.Usage)})
	}
	return t.r, c.ended(ctx, t.r, err)
}

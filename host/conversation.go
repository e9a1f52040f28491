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

// ErrNoModel says that a conversation has nobody to talk to.
var ErrNoModel = errors.New("no model is configured")

// ErrBusy says that a conversation is in the middle of a turn.
var ErrBusy = errors.New("the conversation is in the middle of a turn")

// Conversation is a talk with a model about one thing after another. Its fields are set before
// the first Send, and may be changed between two turns. One turn is under way at a time.
type Conversation struct {
	ID      string
	Model   model.Model // nil: that of the host
	System  string      // what the model is told first; the instructions of servers follow
	Entries []Entry     // so far, of one that is resumed; Snapshot reads them during a turn

	// Usage and Cost are what was used so far, of one that is resumed: for answers, also those that
	// were taken back, and for completions for servers. Used reads them during a turn.
	Usage model.Usage
	Cost  float64 // 0: not known

	// Schema is the JSON Schema that the last answer of each turn fits: Reply.Text is then JSON.
	// A model whose answer does not fit is told what is wrong with it, twice at most. Nil: the
	// answer is any text.
	Schema json.RawMessage

	// OnEvent is told of everything that happens, in order. It must not block for long, nor
	// use the conversation. Nil: nobody is.
	OnEvent func(Event)

	// Keep is told of each entry, and of where it stands: if that is before the end of what was
	// kept, what stood there and after it is no more. A nil entry only ends it there, as at the end
	// of each turn, when nothing more is used. Keep may use Snapshot and Used. An error is noted,
	// and the conversation goes on. Nil: nothing is kept.
	Keep func(ctx context.Context, at int, e *Entry) error

	h       *Host
	busy    chan struct{} // capacity 1: who has put something in has the turn
	telling sync.Mutex    // orders events
	long    longTexts
	beside  atomic.Int32 // how many results come in one message, which share its room

	mu       sync.Mutex               // Entries, Usage and Cost are changed with it held
	sessions map[*server]*mcp.Session // guarded by mu
	allowed  map[string]bool          // tools allowed until the end, by grantOf; guarded by mu
	doubts   map[string]string        // why calls must not be made again, by callKey; nil: nobody has looked yet; guarded by mu
	turn     int                      // guarded by mu
	step     int                      // guarded by mu
	asides   model.Usage              // of completions for servers, not billed yet; guarded by mu
	extra    float64                  // what asides has cost; guarded by mu
	left     trimmed                  // guarded by mu
	places   map[string]int           // of tools among those offered, by name; guarded by mu
	found    []string                 // names of tools to offer if there are too many, the newest last; guarded by mu
}

// NewConversation begins a conversation.
func (h *Host) NewConversation() *Conversation {
	return &Conversation{
		ID: strings.ToLower(rand.Text()[:10]), h: h, busy: make(chan struct{}, 1),
		allowed: map[string]bool{}, places: map[string]int{},
	}
}

// Snapshot returns the entries there are now. It may be called at any time.
func (c *Conversation) Snapshot() []Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.Entries)
}

// Used returns what was used so far, and what it has cost. It may be called at any time.
func (c *Conversation) Used() (model.Usage, float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Usage, c.Cost
}

// use counts what was used.
func (c *Conversation) use(u model.Usage, cost float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Usage.Add(u)
	c.Cost += cost
}

// Reply is what came of a turn.
type Reply struct {
	Text  string // of the last answer
	Steps int
	Usage model.Usage // of answers, and of completions that servers asked for
	Cost  float64     // of Usage; 0: not known
	Stop  model.Stop
	Early Early // why the model had to answer before it wanted to; empty: it had not
}

// Early is why a turn was brought to its end: the model was told to answer with what it had.
type Early string

const (
	TooManySteps Early = "steps"   // it took as many as Limits.Steps allows
	NoProgress   Early = "repeats" // it made the same call again and again, with the same result
)

// Errors of a turn.
var (
	// ErrSteps says that a model that had taken as many steps as it may did not answer then.
	ErrSteps = errors.New("the model has taken as many steps as it may")

	// ErrSchema says that the answer does not fit Conversation.Schema.
	ErrSchema = errors.New("the answer does not fit the schema")
)

// Send says something to the model, and does what it wants until it has its answer.
//
// Text is what a person has written: a resource that is mentioned in it as @server:uri is read
// and attached, a text that begins with /server:prompt stands for the messages of that prompt,
// with arguments as in "/server:prompt name=value other="two words"", and with #tool the model is
// made to begin with that tool, named as in [Tool] or as server/tool. Of what names no server of
// the host nothing is made. What no person has written belongs to more.
//
// Whatever happens, the conversation can go on afterwards: each call in it has a result. The
// reply is what there was, also beside an error, which is ErrNoModel, ErrBusy, ErrSteps,
// ErrSchema, a *model.Error or the cause of ctx. If what was mentioned cannot be had, the error
// says so, the reply is nil, and nothing was said.
func (c *Conversation) Send(ctx context.Context, text string, more ...model.Part) (*Reply, error) {
	m := c.model()
	if m == nil {
		return nil, ErrNoModel
	}
	fitting, err := c.validator()
	if err != nil {
		return nil, err
	}
	done, err := c.begin()
	if err != nil {
		return nil, err
	}
	defer done()
	said, err := c.compose(ctx, text, more)
	if err != nil {
		return nil, err
	}
	c.nextTurn()
	for _, message := range said.messages {
		c.add(ctx, Entry{Message: message})
	}
	t := &turn{c: c, m: m, r: &Reply{}, fitting: fitting, insisted: said.tools}
	return t.r, c.ended(ctx, t.r, t.run(ctx))
}

// model is who answers; nil: nobody.
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

// begin takes the turn, until done is called.
func (c *Conversation) begin() (done func(), err error) {
	select {
	case c.busy <- struct{}{}:
		return func() { <-c.busy }, nil
	default:
		return nil, ErrBusy
	}
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

// ended tells of the end of a turn.
func (c *Conversation) ended(ctx context.Context, r *Reply, err error) error {
	c.bill(r)
	c.keep(ctx, len(c.Entries), nil)
	e := Event{Kind: Ended, Text: r.Text, Usage: &r.Usage, Cost: r.Cost, Early: r.Early}
	if err != nil {
		e.Error = err.Error()
	}
	c.tell(e)
	return err
}

// add appends an entry, and has it kept.
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
		c.tell(Event{Kind: Noted, Text: "keeping the conversation: " + err.Error()})
	}
}

// tell tells OnEvent.
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

// Undo takes the last turn back, and returns what the person said in it. It is ErrBusy in the
// middle of a turn.
func (c *Conversation) Undo(ctx context.Context) (string, error) {
	done, err := c.begin()
	if err != nil {
		return "", err
	}
	defer done()
	c.recall(c.h.listedTools(ctx, 0, c.h.enabled), 0) // what is taken back may have happened all the same
	c.mu.Lock()
	if len(c.Entries) == 0 {
		c.mu.Unlock()
		return "", errors.New("there is nothing to take back")
	}
	at := c.turnStartLocked()
	said := c.Entries[at].Said()
	c.Entries, c.left = c.Entries[:at:at], trimmed{} // what was left out for their sake has room again
	c.mu.Unlock()
	c.keep(ctx, at, nil)
	return said, nil
}

// summaryPrompt asks for a summary.
const summaryPrompt = "Write a summary of this conversation that takes its place, for yourself: what the person wants, what was done and decided, " +
	"facts, names, identifiers and numbers that may be needed, and what is still open. Write the summary alone."

// Summarise has the model write a summary of all that was said, which takes its place in what the
// model is given from then on. The entries stay as they are; the summary is one more, and Undo
// takes it back.
func (c *Conversation) Summarise(ctx context.Context) (*Reply, error) {
	m := c.model()
	if m == nil {
		return nil, ErrNoModel
	}
	done, err := c.begin()
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

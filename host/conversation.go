package host

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/host/approval"
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
	Entries []Entry // set it to resume a conversation; during a turn, use Snapshot to read it

	Settings

	// Usage and Cost are totals. Set them to resume a conversation. They include answers that Undo
	// removed and completions for servers. During a turn, use Used to read them.
	Usage model.Usage
	Cost  float64 // 0: not known

	// OnEvent is called for each event, in order. It must not block for long or use the
	// conversation. If nil, events are discarded.
	OnEvent func(Event)

	// Keep is called for each new entry, to store it at index at. If at is not the end of what is
	// stored, the entries from at on are replaced. A nil entry only truncates there; Keep is called
	// so at the end of each turn too, when usage is final. Keep may call Snapshot and Used. If it
	// fails, the conversation notes the error and goes on. If nil, nothing is stored.
	Keep func(ctx context.Context, at int, e *Entry) error

	// Forget removes steps of a turn from Entries when a summary stands for them, or when requests leave them
	// out and no summary will be written, so that a turn of any length takes bounded memory. The messages that
	// began the turn and its last steps stay. It has no effect while Keep is set, as Entries then are those that are stored.
	// Another conversation with these Entries does not know of the removed calls, also those whose outcome is unknown.
	Forget bool

	h       *Host
	busy    chan struct{} // capacity 1: held by the turn in progress
	telling sync.Mutex    // orders events
	follow  func(Event)   // gets the events of the turn; nil: nothing does; guarded by telling
	long    longTexts
	beside  atomic.Int32 // number of results that share the room of one message

	mu       sync.Mutex               // held to change Entries, Usage and Cost
	sessions map[*server]*mcp.Session // guarded by mu
	grants   []approval.Approval      // what the person allowed in this conversation; never modified; guarded by mu
	granted  chan struct{}            // closed when grants gets more; guarded by mu
	doubts   map[string]string        // why calls must not be repeated without asking, by callKey; nil before recall; guarded by mu
	turn     int                      // guarded by mu
	step     int                      // guarded by mu
	began    time.Time                // of the turn; guarded by mu
	before   model.Usage              // Usage when the turn began; guarded by mu
	paid     float64                  // Cost then; guarded by mu
	asking   map[*spending]struct{}   // the requests in progress; guarded by mu
	asides   model.Usage              // usage of completions for servers, not billed yet; guarded by mu
	extra    float64                  // cost of asides; guarded by mu
	left     trimmed                  // guarded by mu
	fixed    int                      // tokens of the last request beside its messages, estimated; guarded by mu
	counted  bool                     // fixed is known; guarded by mu
	places   map[string]int           // order of offered tools, by name; guarded by mu
	found    []string                 // tools to offer if there are too many, the newest last; guarded by mu
}

// NewConversation returns a new conversation with a random ID.
func (h *Host) NewConversation() *Conversation {
	return &Conversation{
		ID: strings.ToLower(rand.Text()[:10]), h: h, busy: make(chan struct{}, 1),
		granted: make(chan struct{}), places: map[string]int{}, asking: map[*spending]struct{}{},
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

// Save passes the conversation, with its settings as they are now, to Keep, which otherwise has them with
// the next entry. It returns ErrBusy during a turn, at whose end they are kept.
func (c *Conversation) Save(ctx context.Context) error {
	free, err := c.hold()
	if err != nil {
		return err
	}
	defer free()
	c.keep(ctx, len(c.Entries), nil)
	return nil
}

// Size returns how many tokens of the model's window the conversation takes: those of the last answer and
// its request, as the provider counted them, and an estimate of what came after, or of all if the provider
// does not count. Zero means that it is empty, or continues and the provider does not count: then it is known from the next
// request on. It may be called at any time.
func (c *Conversation) Size() (tokens int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.Entries) == 0 {
		return 0
	}
	for _, e := range slices.Backward(c.Entries) {
		if e.mark().Summary {
			break
		}
		if n := e.Usage.Input + e.Usage.Output - e.Retried.Input - e.Retried.Output; n > 0 {
			return tokens + n
		}
		tokens += int64(e.tokens(false))
	}
	if !c.counted {
		return 0
	}
	return int64(c.fixed + c.sizeLocked(c.recapLocked(c.window(c.model())), shortening{}))
}

// Reply is the result of a turn.
type Reply struct {
	Text  string      `json:"text"` // of the last answer
	Steps int         `json:"steps"`
	Usage model.Usage `json:"usage"`           // of the answers, and of completions that servers requested
	Cost  float64     `json:"cost,omitempty"`  // of Usage; 0: not known
	Stop  model.Stop  `json:"stop,omitempty"`  // of the last answer; if it was cut off, the model knows in the next turn; empty: it broke off
	Early Early       `json:"early,omitempty"` // why the host ended the turn before the model did; empty: it did not
}

// Early is the reason why the host ended a turn: it told the model to answer with what it had.
type Early string

const (
	TooManySteps Early = "steps"   // the turn reached Limits.Steps
	TooExpensive Early = "budget"  // the turn has almost used Limits.Tokens or Limits.Cost
	NoProgress   Early = "repeats" // the model kept repeating a call that had the same result
)

// Errors of a turn.
var (
	// ErrSteps says that the model gave no answer after it reached Limits.Steps.
	ErrSteps = errors.New("host: the model has taken the maximum number of steps")

	// ErrBudget says that the next request would exceed Limits.Tokens or Limits.Cost, or the answer did,
	// which was ended.
	ErrBudget = errors.New("host: the tokens or the money of the turn are used up")

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
// ErrNoModel, ErrBusy, ErrSteps, ErrBudget, ErrSchema, a *model.Error, the cause of ctx, ErrClosed after
// [Host.Close], or says that Schema is not valid or that something mentioned cannot be had. If the
// turn did not begin, as with ErrNoModel, ErrBusy and the last two, nothing was said and the reply
// is nil. Otherwise the reply holds what there was, even beside an error.
func (c *Conversation) Send(ctx context.Context, text string, more ...model.Part) (*Reply, error) {
	return c.send(ctx, nil, text, more)
}

// send is Send; follow gets the events of the turn, beside OnEvent, unless it is nil.
func (c *Conversation) send(ctx context.Context, follow func(Event), text string, more []model.Part) (*Reply, error) {
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
	c.tellTo(follow)
	defer c.tellTo(nil)
	said, err := c.compose(ctx, text, more)
	if err != nil {
		return nil, orClosed(ctx, err)
	}
	c.nextTurn()
	for _, message := range said.messages {
		c.add(ctx, Entry{Message: message})
	}
	t := &turn{c: c, m: m, r: &Reply{}, fitting: fitting, insisted: said.tools, opening: len(said.messages)}
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
	free, err := c.hold()
	if err != nil {
		return nil, nil, err
	}
	of, end := context.WithCancelCause(ctx)
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	if c.h.closed {
		end(nil)
		free()
		return nil, nil, ErrClosed
	}
	c.h.turns[&end] = true
	return of, func() {
		c.h.mu.Lock()
		delete(c.h.turns, &end)
		c.h.mu.Unlock()
		end(nil)
		free()
	}, nil
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
	c.began = time.Now()
	c.before, c.paid = c.Usage, c.Cost
}

// ended reports the end of a turn.
func (c *Conversation) ended(ctx context.Context, r *Reply, err error) error {
	err = orClosed(ctx, err)
	c.bill(r)
	c.keep(ctx, len(c.Entries), nil)
	c.mu.Lock()
	took := time.Since(c.began)
	c.mu.Unlock()
	e := Event{Kind: Ended, Text: r.Text, Usage: &r.Usage, Cost: r.Cost, Early: r.Early, Stop: r.Stop, Took: Millis(took), Conversation: c.ID}
	if err != nil {
		e.Error, e.ErrorKind = err.Error(), errorKind(err)
	}
	c.tell(e)
	return err
}

// errorKind returns the kind of the error of a turn, for Event.ErrorKind.
func errorKind(err error) string {
	var failed *model.Error
	if errors.As(err, &failed) {
		return strings.ReplaceAll(string(failed.Kind), " ", "_")
	}
	for _, known := range []struct {
		err  error
		kind string
	}{{ErrSteps, "steps"}, {ErrBudget, "budget"}, {ErrSchema, "schema"}, {ErrClosed, "closed"}, {context.Canceled, "cancelled"}} {
		if errors.Is(err, known.err) {
			return known.kind
		}
	}
	return "other"
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

// tellTo sets the function that gets the events of the turn beside OnEvent; nil: none.
func (c *Conversation) tellTo(follow func(Event)) {
	c.telling.Lock()
	defer c.telling.Unlock()
	c.follow = follow
}

// tell passes an event to OnEvent and to the loop over the events of the turn.
func (c *Conversation) tell(e Event) {
	c.telling.Lock()
	defer c.telling.Unlock()
	if c.OnEvent == nil && c.follow == nil {
		return
	}
	c.mu.Lock()
	e.Time, e.Turn, e.Step = time.Now(), c.turn, c.step
	c.mu.Unlock()
	if c.OnEvent != nil {
		c.OnEvent(e)
	}
	if c.follow != nil {
		c.follow(e)
	}
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

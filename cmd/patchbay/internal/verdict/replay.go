package verdict

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/advice"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/ownfile"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/policy"
	"github.com/patchbay-dev/patchbay/policy/rules"
	"github.com/patchbay-dev/patchbay/trace"
)

// Replay decides about the calls of tools in a recording by other rules. A recording has no principals: all calls have
// the one that is given.
type Replay struct {
	Set       *rules.Set
	Principal *auth.Principal // nil: anonymous
	Server    string          // whose recording it is, if the recording is not that of a gateway; empty: unknown
	Trusted   []string        // servers whose recorded hints of tools count

	// Owners returns a function that finds the server of a name at a gateway with these servers, and its name there. Nil:
	// names of calls that no server got are those at the gateway.
	Owners func(servers []string) (func(name string) (server, own string), error)
}

// Other has the flags of [Other.Replay].
type Other struct {
	File   string `arg:"" name:"trace" help:"A recording of --trace or --record; -: standard input."`
	Policy string `placeholder:"FILE" help:"File of rules; required."`
	Caller
	Trusted []string `placeholder:"SERVER" help:"Recorded hints of its tools count (repeatable)."`
}

// Replay decides about the calls of the recording. The argument server names the server of a recording that is not of a
// gateway, owners is as in [Replay]. The function note gets what makes the decisions uncertain.
func (o *Other) Replay(ctx context.Context, stdin io.Reader, server string, owners func([]string) (func(string) (string, string), error), note func(format string, args ...any)) (*Replayed, error) {
	if o.Policy == "" {
		return nil, advice.Usagef("--policy is missing").Hint("--policy policy.yaml")
	}
	set, err := rules.Load(o.Policy)
	if err != nil {
		return nil, err
	}
	p := &Replay{Set: set, Server: server, Trusted: o.Trusted, Owners: owners}
	if p.Principal, err = o.Caller.Of(); err != nil {
		return nil, err
	}
	if o.File != "-" {
		f, err := ownfile.Open(ctx, o.File)
		if err != nil {
			return nil, advice.Usagef("%w", err)
		}
		defer f.Close()
		stdin = f
	}
	r, err := p.Run(ctx, stdin)
	if err != nil {
		return nil, advice.Usagef("%s: %w", o.File, err)
	}
	for _, f := range r.Faults {
		note("warning: %s: %s", o.File, f)
	}
	if r.Redacted > 0 {
		note("warning: the arguments of %s were recorded without secrets, so the decision may be another", screen.Quantity(r.Redacted, "call"))
	}
	return r, nil
}

// Replayed is what other rules do with a recording.
type Replayed struct {
	Calls    []Recorded `json:"calls"`
	Allowed  int        `json:"allowed"`
	Refused  int        `json:"refused"`
	Differ   int        `json:"differ"`           // from the recording
	Faults   []string   `json:"faults,omitempty"` // lines that are not frames, at most 10
	Redacted int        `json:"redacted"`         // calls whose arguments were recorded without secrets, so the decision may be another
}

// Recorded is a recorded call, and what the rules do with it.
type Recorded struct {
	Line    int       `json:"line"` // of the request in the recording, from 1
	Time    time.Time `json:"time,omitzero"`
	Conn    string    `json:"conn,omitempty"`
	Server  string    `json:"server,omitempty"` // empty: unknown
	Tool    string    `json:"tool"`             // by its name at the server, if that is known
	Reached bool      `json:"reached"`          // a server got it when it was recorded
	Error   string    `json:"error,omitempty"`  // the error that the caller got then
	Allowed bool      `json:"allowed"`          // now
	Differs bool      `json:"differs"`
	Rule    string    `json:"rule"`
	Rules   int       `json:"rulesLine,omitzero"` // line of the rule in its file
	Why     string    `json:"why,omitempty"`

	params json.RawMessage
	dir    trace.Dir
	client mcp.Implementation
}

// maxCalls bounds the calls of a recording.
const maxCalls = 100_000

const maxFaults = 10

// key names a request in a recording.
type key struct{ conn, id string }

// recorded collects what a recording has.
type recorded struct {
	front   []*Recorded // calls of clients of a gateway, or of one client
	joined  map[key]*Recorded
	clients map[string]mcp.Implementation // by connection
	lists   map[key]string                // servers of requests for lists of tools
	hints   map[[2]string]json.RawMessage // definitions by server and tool
	servers []string
	gateway bool
	faults  []string
}

// Run reads a recording and decides about its calls.
func (p *Replay) Run(ctx context.Context, in io.Reader) (*Replayed, error) {
	r := &recorded{joined: map[key]*Recorded{}, clients: map[string]mcp.Implementation{}, lists: map[key]string{}, hints: map[[2]string]json.RawMessage{}}
	line, frames := 0, 0
	for f, err := range trace.Read(in) {
		var bad *trace.LineError
		if line++; errors.As(err, &bad) {
			r.faults = append(r.faults, bad.Error())
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		frames++
		if !f.Message() || f.Cut > 0 {
			continue
		}
		if r.add(line, &f, p.Server); len(r.front) > maxCalls {
			return nil, fmt.Errorf("the recording has more than %d calls of tools", maxCalls)
		}
	}
	if frames == 0 {
		return nil, errors.New(cmp.Or(strings.Join(r.faults[:min(len(r.faults), 1)], ""), "the recording is empty"))
	}
	var owner func(name string) (server, own string)
	if r.gateway && p.Owners != nil {
		var err error
		if owner, err = p.Owners(r.servers); err != nil {
			return nil, err
		}
	}
	out := &Replayed{Calls: []Recorded{}, Faults: r.faults[:min(len(r.faults), maxFaults)]}
	for _, c := range r.front {
		c.Reached = c.Reached || !r.gateway
		if c.Server == "" && owner != nil {
			if server, own := owner(c.Tool); server != "" && own != "" {
				c.Server, c.Tool = server, own
			}
		}
		p.decide(ctx, c, r.hints[[2]string{c.Server, c.Tool}])
		if strings.Contains(string(c.params), trace.Redacted) {
			out.Redacted++
		}
		if c.Differs = c.Reached != c.Allowed; c.Differs {
			out.Differ++
		}
		if c.Allowed {
			out.Allowed++
		} else {
			out.Refused++
		}
		out.Calls = append(out.Calls, *c)
	}
	return out, nil
}

// decide decides about a call.
func (p *Replay) decide(ctx context.Context, c *Recorded, definition json.RawMessage) {
	arguments, _ := jsonx.Lookup(c.params, "arguments")
	a := &policy.Access{
		Principal: p.Principal, Server: c.Server, Method: callMethod, Kind: mcp.KindTool, Name: c.Tool, Arguments: arguments,
		Client: func() mcp.Implementation { return c.client },
	}
	if definition != nil && slices.Contains(p.Trusted, c.Server) {
		said := Hints(definition)
		a.Annotations = func() *policy.Annotations { return said }
	}
	v := Of(ctx, p.Set, a)
	c.Allowed, c.Rule, c.Rules, c.Why = v.Allowed, v.Rule, v.Line(), v.Why()
}

// message is a message, or a part of a batch.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// add adds the messages of a frame.
func (r *recorded) add(line int, f *trace.Frame, server string) {
	batch := []message{{}}
	raw := bytes.Clone(f.Msg)
	if jsonx.KindOf(raw) == '[' {
		if jsonx.Unmarshal(raw, &batch) != nil {
			return
		}
	} else if jsonx.Unmarshal(raw, &batch[0]) != nil {
		return
	}
	behind := f.Server()
	upstream := behind != ""
	if upstream {
		server = behind
		if r.gateway = true; !slices.Contains(r.servers, server) {
			r.servers = append(r.servers, server)
		}
	}
	for i := range batch {
		r.message(line, f, server, upstream, &batch[i])
	}
}

func (r *recorded) message(line int, f *trace.Frame, server string, upstream bool, msg *message) {
	at := key{f.Conn, string(msg.ID)}
	quoted, _ := jsonx.Lookup(msg.Params, "name")
	name, _ := jsonx.Unquote(quoted)
	switch {
	case msg.Method == "initialize":
		r.clients[f.Conn] = client(msg.Params, "clientInfo")
	case msg.Method == "tools/list":
		r.lists[at] = server
	case msg.Method == callMethod && upstream:
		if c := r.joined[key{f.For.Conn, f.For.ID}]; c != nil && f.Dir == trace.Out {
			c.Server, c.Tool, c.Reached = server, name, true
		}
	case msg.Method == callMethod:
		c := &Recorded{Line: line, Time: f.Time, Conn: f.Conn, Server: server, Tool: name, params: msg.Params, dir: f.Dir, client: r.clients[f.Conn]}
		if meta, ok := jsonx.Lookup(msg.Params, "_meta"); ok {
			if said := client(meta, "io.modelcontextprotocol/clientInfo"); said.Name != "" {
				c.client = said
			}
		}
		r.front = append(r.front, c)
		r.joined[at] = c
	case msg.Method != "":
	case msg.Result != nil || msg.Error != nil:
		if of, ok := r.lists[at]; ok {
			delete(r.lists, at)
			r.listed(of, msg.Result)
		}
		if c := r.joined[at]; c != nil && c.dir != f.Dir {
			if msg.Error != nil {
				c.Error = text.Short(msg.Error.Message)
			} else {
				c.Reached = true // servers of this program have no connection that is recorded
			}
		}
	}
}

const callMethod = "tools/call"

// client reads the description of a client.
func client(in json.RawMessage, member string) (out mcp.Implementation) {
	var said struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	if raw, ok := jsonx.Lookup(in, member); ok && jsonx.Unmarshal(raw, &said) == nil {
		out.Name, out.Version = said.Name, said.Version
	}
	return out
}

// listed keeps the definitions of a list of tools.
func (r *recorded) listed(server string, result json.RawMessage) {
	var list []json.RawMessage
	if raw, ok := jsonx.Lookup(result, "tools"); !ok || jsonx.Unmarshal(raw, &list) != nil {
		return
	}
	for _, t := range list {
		quoted, _ := jsonx.Lookup(t, "name")
		if name, err := jsonx.Unquote(quoted); err == nil {
			r.hints[[2]string{server, name}] = t
		}
	}
}

// Hints returns the annotations in the definition of a tool.
func Hints(definition json.RawMessage) *policy.Annotations {
	var said struct {
		Annotations struct {
			Title       string `json:"title"`
			ReadOnly    *bool  `json:"readOnlyHint"`
			Destructive *bool  `json:"destructiveHint"`
			Idempotent  *bool  `json:"idempotentHint"`
			OpenWorld   *bool  `json:"openWorldHint"`
		} `json:"annotations"`
	}
	n := policy.Unannotated
	if jsonx.Unmarshal(definition, &said) != nil {
		return &n
	}
	n.Title = said.Annotations.Title
	for _, hint := range []struct{ of, to *bool }{
		{said.Annotations.ReadOnly, &n.ReadOnly}, {said.Annotations.Destructive, &n.Destructive},
		{said.Annotations.Idempotent, &n.Idempotent}, {said.Annotations.OpenWorld, &n.OpenWorld},
	} {
		if hint.of != nil {
			*hint.to = *hint.of
		}
	}
	return &n
}

// Grid returns a table of the calls. A mark in front shows those that differ from the recording.
func (r *Replayed) Grid() *screen.Grid {
	g := &screen.Grid{}
	g.Add("", "LINE", "SERVER/TOOL", "THEN", "NOW", "RULE")
	for _, c := range r.Calls {
		mark, then, now := "", "sent", "refused"
		if c.Differs {
			mark = "!"
		}
		switch {
		case !c.Reached:
			then = "not sent"
		case c.Error != "":
			then = "error"
		}
		if c.Allowed {
			now = "allowed"
		}
		rule := c.Rule
		if c.Rules > 0 {
			rule = fmt.Sprintf("%s (line %d)", c.Rule, c.Rules)
		}
		g.Add(mark, fmt.Sprint(c.Line), strings.TrimPrefix(c.Server+"/"+c.Tool, "/"), then, now, rule)
	}
	return g
}

// Summary adds up the calls in a sentence.
func (r *Replayed) Summary() string {
	if len(r.Calls) == 0 {
		return "the recording has no calls of tools"
	}
	return fmt.Sprintf("%s: %d allowed, %d refused; %d differ from the recording", screen.Quantity(len(r.Calls), "call"), r.Allowed, r.Refused, r.Differ)
}

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/complete"
	"github.com/patchbay-dev/patchbay/internal/feature"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/launch"
	"github.com/patchbay-dev/patchbay/mcp"
)

var watchVerb = verb{
	name: "watch", summary: "Show updates of resources and changes of lists.", usage: "[URI ...] [SERVER]",
	examples: []string{"patchbay watch test://watched-resource --read -s everything", "patchbay watch --json -s http://127.0.0.1:7420/mcp"},
	server:   oneServer,
	details: `Prints a line per event until ctrl-C, with --json as JSON. Names the watched
lists and resources on standard error.`,
	command: func() command { return new(watchCmd) },
}

// watchCmd prints the notifications from a server: updates of resources, and changes of its lists.
type watchCmd struct {
	URIs []string `arg:"" optional:"" name:"uri" help:"Resources to watch, in addition to the lists."`
	Read bool     `help:"Read each resource at the start and after updates."`
}

func (*watchCmd) candidates(a *app, current string) (out []complete.Candidate) {
	return a.features(current, feature.Resources)
}

// Run prints until ctrl-C, or until the server ends the subscription.
func (c *watchCmd) Run(a *app) error {
	p, err := a.open()
	if err != nil {
		return err
	}
	for e, err := range p.Watch(a.ctx, c.URIs...) {
		if err != nil {
			return err
		}
		if err := c.event(a, p, e); err != nil {
			return err
		}
		if err := a.out.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// event prints one event.
func (c *watchCmd) event(a *app, p *launch.Session, e mcp.Event) error {
	if a.JSON {
		if err := c.line(a, e.Method, e.Params, nil); err != nil {
			return err
		}
	}
	var read []string
	switch {
	case e.Method == "notifications/subscriptions/acknowledged":
		if err := c.acknowledged(a, e.Params); err != nil {
			return err
		}
		read = c.URIs
	case e.Log != nil: // it is on standard error
	case e.URI != "":
		c.say(a, "updated "+e.URI)
		read = []string{e.URI}
	default:
		c.say(a, "changed "+strings.TrimSuffix(strings.TrimPrefix(e.Method, "notifications/"), "/list_changed"))
	}
	for _, uri := range read {
		if !c.Read {
			break
		}
		if err := c.read(a, p, uri); err != nil {
			return err
		}
	}
	return nil
}

// say prints an event for people, with the time.
func (c *watchCmd) say(a *app, text string) {
	if !a.JSON {
		a.print(a.paint(time.Now().Format("15:04:05"), "2") + " " + oneLine(text))
	}
}

// acknowledged prints what is watched. It returns an error if that is nothing.
func (c *watchCmd) acknowledged(a *app, params json.RawMessage) error {
	var w struct {
		Notifications struct {
			Tools     bool     `json:"toolsListChanged"`
			Prompts   bool     `json:"promptsListChanged"`
			Resources bool     `json:"resourcesListChanged"`
			URIs      []string `json:"resourceSubscriptions"`
		} `json:"notifications"`
	}
	if err := jsonx.Unmarshal(params, &w); err != nil {
		return fmt.Errorf("watch: invalid acknowledgement: %w", err)
	}
	n := w.Notifications
	var what []string
	for name, on := range map[string]bool{"tools": n.Tools, "prompts": n.Prompts, "resources": n.Resources} {
		if on {
			what = append(what, "the list of "+name)
		}
	}
	slices.Sort(what)
	what = append(what, n.URIs...)
	for _, uri := range c.URIs {
		if !slices.Contains(n.URIs, uri) {
			a.talk.Note("warning: %s does not report updates of %s", a.serverName(), uri)
		}
	}
	if len(what) == 0 {
		return &fault{Code: exitAnswer, Err: fmt.Errorf("%s reports no changes", a.serverName()), Next: a.other("discover")}
	}
	a.talk.Note("watching %s; ctrl-C ends it", strings.Join(what, ", "))
	return nil
}

// read prints the resource. If it is gone, read prints that and watching goes on.
func (c *watchCmd) read(a *app, p *launch.Session, uri string) error {
	raw, err := p.Raw(a.ctx, "resources/read", map[string]string{"uri": uri}, mcp.WithoutCache())
	var rpc *mcp.Error
	switch {
	case errors.As(err, &rpc):
		a.talk.Note("warning: cannot read %s: %s", uri, clip(rpc.Message))
		return nil
	case err != nil:
		return err
	case a.JSON:
		return c.line(a, "resources/read", nil, raw)
	}
	return a.showContents(raw)
}

// line prints a line of JSON.
func (c *watchCmd) line(a *app, method string, params, result json.RawMessage) error {
	return a.printJSON(struct {
		Time   time.Time       `json:"time"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params,omitempty"`
		Result json.RawMessage `json:"result,omitempty"`
	}{time.Now().UTC(), method, params, result})
}

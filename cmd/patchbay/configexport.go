package main

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/complete"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/config/hosts"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/secrets"
)

var configExportVerb = verb{
	name: "export", summary: "Print the servers in the format of another host.", usage: "HOST [NAME ...]",
	examples: []string{"patchbay config export cursor", "patchbay config export codex memory"},
	details: `Prints a file of the host; hosts are those of patchbay help config import.
Values of env and headers become variables, unless --secrets asks for them.`,
	command: func() command { return new(configExportCmd) },
}

// configExportCmd prints the servers of mcp.json as another host has them.
type configExportCmd struct {
	Host    string   `arg:"" help:"The host."`
	Names   []string `arg:"" optional:"" help:"Only these servers."`
	Secrets bool     `help:"Print the values of env and headers too."`
}

func (*configExportCmd) candidates(a *app, _ string) (out []complete.Candidate) {
	if len(a.words) == 0 {
		return hostNames()
	}
	return a.configServers()
}

func (c *configExportCmd) Run(a *app) error {
	h, err := hostNamed(c.Host)
	if err != nil {
		return err
	}
	path, err := a.configPath()
	if err != nil {
		return err
	}
	if path == "" {
		return usagef("there is no mcp.json to export").hint("patchbay config add NAME -- COMMAND")
	}
	doc, err := config.Open(path)
	if err != nil {
		return err
	}
	l := &hosts.Listing{Inputs: doc.Inputs()}
	hidden := 0
	var names []string
	for _, e := range doc.Entries() {
		names = append(names, e.Name)
		if len(c.Names) > 0 && !slices.Contains(c.Names, e.Name) {
			continue
		}
		if !c.Secrets {
			var n int
			e, n = hosts.Redact(e)
			hidden += n
			if e, n, err = variables(e); err != nil {
				return err
			}
			hidden += n
		}
		l.Servers = append(l.Servers, e)
	}
	for _, name := range c.Names {
		if !slices.Contains(names, name) {
			return usagef("%s has no server %q%s", here(path), name, didYouMean(name, names)).hint(a.beside("config", "list"))
		}
	}
	out, err := h.Write(l)
	if err != nil {
		return err
	}
	a.out.Write(out)
	slices.Sort(l.Notes)
	for _, note := range slices.Compact(l.Notes) {
		a.talk.Note("%s", note)
	}
	if hidden > 0 {
		a.talk.Note("%s that may be secrets became variables; --secrets prints them as they are", quantity(hidden, "value"))
	}
	return nil
}

// variables puts variables in the place of the secrets in the arguments and the URL of a server.
func variables(e config.Entry) (config.Entry, int, error) {
	n := 0
	variable := func(name string) string {
		n++
		id := strings.Trim(e.Name+"_"+strings.TrimLeft(name, "-"), "_")
		return "${" + strings.TrimPrefix(config.Input{ID: id}.EnvName(), config.InputEnvPrefix) + "}"
	}
	object := e.Object
	if list, ok := jsonx.Lookup(object, "args"); ok && jsonx.KindOf(list) == '[' {
		var args []json.RawMessage
		before := ""
		for raw := range jsonx.Elements(list) {
			arg, err := jsonx.Unquote(raw)
			if part := secrets.Part(before, arg); err == nil && part != "" {
				head := strings.TrimSuffix(arg, part)
				raw = jsonx.AppendString(nil, head+variable(cmp.Or(strings.Trim(head, "=: "), before)))
			} else if secrets := secrets.URL(arg); err == nil && len(secrets) > 0 {
				raw = jsonx.AppendString(nil, variableURL(arg, variable))
			}
			args, before = append(args, raw), arg
		}
		raw, err := jsonx.Marshal(args)
		if err != nil {
			return e, 0, err
		}
		object = jsonx.With(nil, object, "args", raw)
	}
	raw, _ := jsonx.Lookup(object, "url")
	if address, err := jsonx.Unquote(raw); err == nil && len(secrets.URL(address)) > 0 {
		object = jsonx.With(nil, object, "url", jsonx.AppendString(nil, variableURL(address, variable)))
	}
	return config.Entry{Name: e.Name, Object: object}, n, nil
}

// variableURL puts variables in the place of the secrets in a URL.
func variableURL(text string, variable func(name string) string) string {
	u, err := url.Parse(text)
	if err != nil {
		return secrets.ShownURL(text)
	}
	if password, ok := u.User.Password(); ok && password != "" && !strings.Contains(password, "${") {
		text = strings.Replace(text, u.User.String()+"@", url.User(u.User.Username()).String()+":"+variable("password")+"@", 1)
	} else if u.User != nil && !ok && !strings.Contains(u.User.Username(), "${") {
		text = strings.Replace(text, u.User.String()+"@", variable("user")+"@", 1)
	}
	for _, pair := range strings.Split(u.RawQuery, "&") {
		if name, value, ok := strings.Cut(pair, "="); ok && value != "" && secrets.Name(name) && !strings.Contains(value, "${") {
			text = strings.Replace(text, pair, name+"="+variable(name), 1)
		}
	}
	for _, left := range secrets.URL(text) {
		if !strings.Contains(left, "${") { // it is written in another way than ours
			return secrets.ShownURL(text)
		}
	}
	return text
}

package hosts

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/pattern"
)

// Codex lists servers in TOML. It does not replace variables. Instead it has separate members for
// the names of variables to pass on or send.

var (
	wholeVariable  = pattern.Lazy(`^\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)\}$`)
	bearerVariable = pattern.Lazy(`^Bearer \$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)\}$`)
)

func readCodex(_ Host, data []byte, from From) (*Listing, error) {
	var file struct {
		Servers map[string]any `toml:"mcp_servers"`
	}
	if err := toml.Unmarshal(data, &file); err != nil {
		var at *toml.DecodeError
		if errors.As(err, &at) {
			line, column := at.Position()
			return nil, fmt.Errorf("%s:%d:%d: this is not valid TOML", from.Path, line, column)
		}
		return nil, fmt.Errorf("%s is not valid TOML", from.Path)
	}
	l := new(Listing)
	for _, name := range slices.Sorted(maps.Keys(file.Servers)) {
		note := l.about(name)
		o, ok := ordered(file.Servers[name])
		if !ok {
			note("left out: it is a table that JSON cannot represent")
			continue
		}
		if !o.has("command") && !o.has("url") {
			note("left out: it has neither a command nor a url")
			continue
		}
		verbatim.check(o, note)
		takeEnabled(o)
		takeHeaders(o)
		l.Servers = append(l.Servers, config.Entry{Name: name, Object: arrange(o)})
	}
	return l, nil
}

// takeHeaders merges the three members in which Codex has headers.
func takeHeaders(o *object) {
	headers := new(object)
	if jsonx.KindOf(o.get("http_headers")) == '{' {
		headers = objectOf(o.get("http_headers"))
		o.remove("http_headers")
	}
	if jsonx.KindOf(o.get("env_http_headers")) == '{' {
		rest := new(object)
		for _, f := range objectOf(o.get("env_http_headers")).fields {
			if name, err := jsonx.Unquote(f.value); err == nil && !headers.has(f.name) && wholeVariable().MatchString("${"+name+"}") {
				headers.setText(f.name, "${"+name+"}")
			} else {
				rest.set(f.name, f.value)
			}
		}
		o.set("env_http_headers", rest.json())
		if len(rest.fields) == 0 {
			o.remove("env_http_headers")
		}
	}
	if name := o.text("bearer_token_env_var"); !headers.has("Authorization") && wholeVariable().MatchString("${"+name+"}") {
		headers.setText("Authorization", "Bearer ${"+name+"}")
		o.remove("bearer_token_env_var")
	}
	if len(headers.fields) > 0 && !o.has("headers") {
		o.set("headers", headers.json())
	}
}

// giveHeaders is the reverse of takeHeaders.
func giveHeaders(o *object, note func(string)) {
	if jsonx.KindOf(o.get("headers")) != '{' {
		return
	}
	plain, env := new(object), new(object)
	for _, f := range objectOf(o.get("headers")).fields {
		text, err := jsonx.Unquote(f.value)
		bearer := bearerVariable().FindStringSubmatch(text)
		switch {
		case err == nil && strings.EqualFold(f.name, "Authorization") && bearer != nil:
			o.setText("bearer_token_env_var", bearer[1])
		case variable(f.value) != "":
			env.setText(f.name, variable(f.value))
		case err == nil:
			plain.setText(f.name, verbatim.text(text, note))
		default:
			plain.set(f.name, f.value)
		}
	}
	o.remove("headers")
	if len(plain.fields) > 0 {
		o.set("http_headers", plain.json())
	}
	if len(env.fields) > 0 {
		o.set("env_http_headers", env.json())
	}
}

func writeCodex(_ Host, l *Listing) ([]byte, error) {
	servers := make(map[string]any)
	for _, e := range l.Servers {
		o, note := objectOf(e.Object), l.about(e.Name)
		if !portable(o, note) {
			continue
		}
		if o.has("url") && transport(o) == "sse" {
			note("left out: Codex does not speak the old transport with events (sse)")
			continue
		}
		if o.has("envFile") {
			note(`Codex does not read "envFile"`)
		}
		giveHeaders(o, note)
		if names := takeVariables(o, "env"); len(names) > 0 {
			var all []any
			for v := range jsonx.Elements(o.get("env_vars")) {
				all = append(all, v)
			}
			for _, name := range names {
				all = append(all, name)
			}
			raw, err := json.Marshal(all)
			if err != nil {
				return nil, err
			}
			o.set("env_vars", raw)
		}
		verbatim.write(o, note)
		giveEnabled(o)
		o.remove("type")
		o.fields = slices.DeleteFunc(o.fields, func(f field) bool { return string(f.value) == "null" }) // TOML has none
		v, err := decoded(o.json())
		if err != nil {
			return nil, err
		}
		servers[e.Name] = v
	}
	out, err := toml.Marshal(map[string]any{"mcp_servers": servers})
	if err != nil {
		return nil, fmt.Errorf("write TOML: %w", err)
	}
	return out, nil
}

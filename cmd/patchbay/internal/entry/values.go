package entry

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/pattern"
	"github.com/patchbay-dev/patchbay/internal/secrets"
	"github.com/patchbay-dev/patchbay/trace"
)

// Value is a member of an entry, or a setting.
type Value struct {
	Name   string   `json:"name"`
	Text   string   `json:"text"` // without possible secrets
	From   []string `json:"from,omitempty"`
	Source string   `json:"source,omitempty"`
}

// Values returns the values in a server's entry, without possible secrets.
func Values(s config.Server) []Value {
	var out []Value
	before := "" // the previous argument
	for _, v := range s.Values() {
		e := Value{Name: v.Member, Text: v.Text(), From: v.From(), Source: HereLine(v.Source)}
		switch v.Member {
		case "args":
			e.Name += "[" + v.Name + "]"
			e.Text = secrets.ShownArg(before, e.Text)
			before = v.Written
		case "env", "headers":
			e.Name += " " + v.Name
			e.Text = trace.Redacted
			if text := v.Text(); text == "" {
				e.Text = `""`
			}
		case "url":
			e.Text = secrets.ShownURL(v.Text())
		}
		if secretVariable(v.Written) {
			e.Text = v.Written
			if v.Member == "url" {
				e.Text = secrets.ShownURL(v.Written)
			}
		}
		out = append(out, e)
	}
	return out
}

var variableRef = pattern.Lazy(`\$\{(?:env:)?([^}:]+)`)

// secretVariable reports whether a value refers to a variable that is named like a secret.
func secretVariable(written string) bool {
	for _, m := range variableRef().FindAllStringSubmatch(written, -1) {
		if secrets.Name(m[1]) {
			return true
		}
	}
	return false
}

// Settings returns the members of a server that only Patchbay reads.
func Settings(s config.Server) []Value {
	var out []Value
	add := func(name, text string) {
		if text != "" {
			out = append(out, Value{Name: name, Text: text})
		}
	}
	long := func(d time.Duration) string {
		switch {
		case d < 0:
			return "never"
		case d == 0:
			return ""
		}
		return d.String()
	}
	if s.Disabled {
		add("disabled", "true")
	}
	add("share", s.Share)
	if s.Clients > 0 {
		add("clients", strconv.Itoa(s.Clients))
	}
	add("queue", long(s.Queue))
	add("replicas", strings.Join(s.Replicas, ", "))
	add("breaker", breakerText(s.Breaker))
	add("idle", long(s.Idle))
	add("startTimeout", long(s.StartTimeout))
	add("callTimeout", long(s.CallTimeout))
	add("callLimit", long(s.CallLimit))
	add("ca", s.CA)
	add("cert", s.Cert)
	add("key", s.Key)
	if s.InheritEnv {
		add("inheritEnv", "true")
	}
	if s.Trusted {
		add("trusted", "true")
	}
	if s.Required {
		add("required", "true")
	}
	add("group", s.Group)
	add("cache", long(s.Cache))
	if s.EnabledTools != nil {
		add("tools enabled", cmp.Or(strings.Join(s.EnabledTools, ", "), "none"))
	}
	add("dev watch", strings.Join(s.Dev.Watch, ", "))
	add("dev debug", s.Dev.Debug)
	add("tools disabled", strings.Join(s.DisabledTools, ", "))
	return out
}

// breakerText returns the setting "breaker" in words; empty: it is not set.
func breakerText(b config.Breaker) string {
	switch {
	case b.Off:
		return "off"
	case !b.On:
		return ""
	case b.Calls == 0 && b.For == 0:
		return "on"
	}
	var out []string
	if b.Calls > 0 {
		out = append(out, fmt.Sprintf("open at %d of %d in %v", b.Failures, b.Calls, b.Window))
	}
	if b.For > 0 {
		out = append(out, fmt.Sprintf("for %v", b.For))
	}
	return strings.Join(out, ", ")
}

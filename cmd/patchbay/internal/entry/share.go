package entry

import (
	"cmp"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/secrets"
	"github.com/patchbay-dev/patchbay/trace"
)

// Variables replaces the secrets in the arguments and the URL of a server by variables. It returns
// their number.
func Variables(e config.Entry) (config.Entry, int, error) {
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

// variableURL replaces the secrets in a URL by variables.
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
		if !strings.Contains(left, "${") { // the URL is written in a different form
			return secrets.ShownURL(text)
		}
	}
	return text
}

// Masked returns a server without the values of its env, headers and api_key.
func Masked(object json.RawMessage) json.RawMessage {
	if raw, ok := jsonx.Lookup(object, "api_key"); ok && !strings.Contains(string(raw), "${") {
		object = jsonx.With(nil, object, "api_key", jsonx.AppendString(nil, trace.Redacted))
	}
	for _, member := range []string{"env", "headers"} {
		table, ok := jsonx.Lookup(object, member)
		if !ok || jsonx.KindOf(table) != '{' {
			continue
		}
		for name, value := range jsonx.Members(table) {
			if text, err := jsonx.Unquote(value); err != nil || text != "" && !strings.Contains(text, "${") {
				table = jsonx.With(nil, table, string(name), jsonx.AppendString(nil, trace.Redacted))
			}
		}
		object = jsonx.With(nil, object, member, table)
	}
	return object
}

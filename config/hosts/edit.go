package hosts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// ErrByHand reports that the file of a host cannot be changed without a loss of its comments or layout: a
// person has to add or remove the lines.
var ErrByHand = errors.New("hosts: this file has to be changed by hand")

// ErrLeftOut reports that a host cannot use a server. The notes of the [Listing] say why.
var ErrLeftOut = errors.New("hosts: the host cannot use this server")

// Put returns the text of a file of the host with the one server of l added, or changed, and with the inputs of
// l that the file does not have. Other parts keep their comments, order and layout. The error wraps
// [ErrByHand] or [ErrLeftOut] in these cases.
//
// Codex reads TOML: there, a server is added at the end of the file, and is not changed.
func (h Host) Put(path string, data []byte, l *Listing) ([]byte, error) {
	if len(l.Servers) != 1 {
		return nil, fmt.Errorf("%d servers are to be added, not one", len(l.Servers))
	}
	name := l.Servers[0].Name
	whole, err := h.Write(l)
	if err != nil {
		return nil, err
	}
	switch {
	case h.Name == "codex":
		return putTOML(path, data, whole, name)
	case h.list == nil:
		return nil, fmt.Errorf("%s: %w", path, ErrByHand)
	}
	entry, ok := jsonx.LookupPath(whole, append(slices.Clone(h.list), name)...)
	if !ok {
		return nil, fmt.Errorf("%s: %w", h.Title, ErrLeftOut)
	}
	list := h.listIn(path, data)
	if data, err = config.SetMember(path, data, entry, name, list...); err != nil {
		return nil, err
	}
	inputs, _ := jsonx.Lookup(whole, "inputs")
	if jsonx.KindOf(inputs) != '[' {
		return data, nil
	}
	text, err := config.Standardize(path, data)
	if err != nil {
		return nil, err
	}
	home := list[:len(list)-1]
	for input := range jsonx.Elements(inputs) {
		id, _ := jsonx.Lookup(input, "id")
		there, _ := jsonx.LookupPath(text, append(slices.Clone(home), "inputs")...)
		has := false
		for one := range jsonx.Elements(jsonx.Compact(nil, orArray(there))) {
			other, _ := jsonx.Lookup(one, "id")
			has = has || bytes.Equal(id, other)
		}
		if has {
			continue
		}
		if len(home) > 0 {
			return nil, fmt.Errorf("%s: %w: its inputs are in %q", path, ErrByHand, home[0])
		}
		if data, err = config.AppendElement(path, data, input, "inputs"); err != nil {
			return nil, err
		}
	}
	return data, nil
}

func orArray(raw json.RawMessage) json.RawMessage {
	if jsonx.KindOf(raw) != '[' {
		return json.RawMessage("[]")
	}
	return raw
}

// listIn returns the path of the list of servers in a file: the usual one, or the one in "mcp" that settings of
// VS Code had before.
func (h Host) listIn(path string, data []byte) []string {
	if text, err := config.Standardize(path, data); err == nil && h.Name == "vscode" {
		if _, has := jsonx.LookupPath(text, h.list...); !has {
			if _, older := jsonx.LookupPath(text, "mcp", "servers"); older {
				return []string{"mcp", "servers"}
			}
		}
	}
	return h.list
}

// Entry returns the server of a name in a file, as the host has it; in JSON. The result ok is false if the file
// does not have it.
func (h Host) Entry(path string, data []byte, name string) (raw json.RawMessage, ok bool, err error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, false, nil
	}
	if h.list == nil {
		l, err := h.Read(data, From{Path: path})
		if err != nil {
			return nil, false, err
		}
		for _, e := range l.Servers {
			if e.Name == name {
				return e.Object, true, nil
			}
		}
		return nil, false, nil
	}
	text, err := config.Standardize(path, data)
	if err != nil {
		return nil, false, err
	}
	raw, ok = jsonx.LookupPath(text, append(slices.Clone(h.listIn(path, data)), name)...)
	return jsonx.Compact(nil, raw), ok, nil
}

// Drop returns the text of a file of the host without a server, as [Host.Put] adds it.
func (h Host) Drop(path string, data []byte, name string) ([]byte, error) {
	switch {
	case h.Name == "codex":
		return dropTOML(path, data, name)
	case h.list == nil:
		return nil, fmt.Errorf("%s: %w", path, ErrByHand)
	}
	return config.RemoveMember(path, data, name, h.listIn(path, data)...)
}

// putTOML adds the table of a server to the end of a TOML file.
func putTOML(path string, data, whole []byte, name string) ([]byte, error) {
	var before, after, want map[string]any
	if err := toml.Unmarshal(data, &before); err != nil {
		return nil, fmt.Errorf("%s is not valid TOML", path)
	}
	if err := toml.Unmarshal(whole, &want); err != nil {
		return nil, err
	}
	entry, ok := serversOf(want)[name]
	if !ok {
		return nil, fmt.Errorf("%s: %w", path, ErrLeftOut)
	}
	if _, there := serversOf(before)[name]; there {
		return nil, fmt.Errorf("%s: %w, as it has the table of %q", path, ErrByHand, name)
	}
	// The table of all servers would be there twice.
	_, table, _ := strings.Cut(string(whole), "[mcp_servers]\n")
	if table == "" {
		table = string(whole)
	}
	newline := "\n"
	if bytes.Contains(data, []byte("\r\n")) {
		newline = "\r\n"
	}
	out := bytes.Clone(data)
	if len(out) > 0 && out[len(out)-1] != '\n' {
		out = append(out, newline...)
	}
	if len(bytes.TrimSpace(out)) > 0 {
		out = append(out, newline...)
	}
	out = append(out, strings.ReplaceAll(table, "\n", newline)...)
	// The end of the file may be in a place where a table cannot begin.
	if err := toml.Unmarshal(out, &after); err != nil || !alike(serversOf(after)[name], entry) || len(serversOf(after)) != len(serversOf(before))+1 {
		return nil, fmt.Errorf("%s: %w", path, ErrByHand)
	}
	return out, nil
}

func serversOf(file map[string]any) map[string]any {
	servers, _ := file["mcp_servers"].(map[string]any)
	return servers
}

func alike(a, b any) bool {
	x, err := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err == nil && err2 == nil && bytes.Equal(x, y)
}

// dropTOML removes the tables of a server: the lines from its first heading to that of another table.
func dropTOML(path string, data []byte, name string) ([]byte, error) {
	var before, after map[string]any
	if err := toml.Unmarshal(data, &before); err != nil {
		return nil, fmt.Errorf("%s is not valid TOML", path)
	}
	if _, there := serversOf(before)[name]; !there {
		return nil, fmt.Errorf("%s has no server %q", path, name)
	}
	var out []byte
	inside := false
	for line := range bytes.Lines(data) {
		if text := strings.TrimSpace(string(line)); strings.HasPrefix(text, "[") {
			inside = false
			for _, key := range []string{name, `"` + name + `"`, "'" + name + "'"} {
				inside = inside || strings.HasPrefix(text, "[mcp_servers."+key+"]") || strings.HasPrefix(text, "[mcp_servers."+key+".")
			}
		}
		if !inside {
			out = append(out, line...)
		}
	}
	rest := maps.Clone(serversOf(before))
	delete(rest, name)
	if err := toml.Unmarshal(out, &after); err != nil || len(serversOf(after)) != len(rest) || len(rest) > 0 && !alike(serversOf(after), rest) {
		return nil, fmt.Errorf("%s: %w", path, ErrByHand)
	}
	return out, nil
}

// Variables reports whether the host replaces variables of the environment in headers.
func (h Host) Variables() bool { return h.spell.env != nil || h.Name == "codex" }

// Inputs reports whether the host asks a person for the inputs of its file, and keeps the answers elsewhere.
func (h Host) Inputs() bool { return h.spell.inputs }

// Variable returns the name of an environment variable for a thing, such as "PATCHBAY_AUTHORIZATION" for
// "patchbay_Authorization".
func Variable(of string) string { return variableOf(of) }

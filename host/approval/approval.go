// Package approval stores the tools that a person has allowed permanently.
//
// An approval is for one tool of one server with its current definition: if the description, the
// schemas or any other member that a model or a person relies on changes, the person is asked
// again. That includes approvals of several tools at once, such as all tools of a server: they are
// one approval for each tool that the server had then. A tool that appears later is not allowed.
//
//	f, err := approval.Open("")
//	if err != nil {
//		return err
//	}
//	found, err := f.Find(identity, tool)
//
// The identity of a server is a text from the caller, for instance its URL or its command. A
// server must not be able to choose it, or it could use the approvals of another.
//
// # Guarantees
//
//   - The file is replaced whole, under a lock, and readable only by its owner; several processes
//     may change it at once.
//   - A file that cannot be read is an error and allows nothing.
//   - Only Revoke removes an approval, and Allow those of an earlier definition of the tool.
//   - A file with conditions has version 2, so that a program that does not know conditions does not
//     read it. A file without has version 1.
package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/internal/definition"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Approval is a permanently allowed tool.
type Approval struct {
	Identity string    `json:"identity"` // of the server
	Server   string    `json:"server"`   // the person's name for it
	Tool     string    `json:"tool"`
	Hash     string    `json:"hash"` // of the tool's definition, see [Hash]
	By       string    `json:"by,omitempty"`
	At       time.Time `json:"at,omitzero"`
	Rule

	// Members are the hashes of the members of the definition, to find out which have changed.
	Members map[string]string `json:"members"`

	// Definition is the definition of the tool, to show what has changed; nil: it has more than 16 KiB, or an
	// earlier version of this package stored the approval.
	Definition json.RawMessage `json:"definition,omitempty"`
}

// Of returns the approval of a tool with its current definition. The argument server is the person's name for the
// server.
func Of(identity, server string, rule Rule, tool *mcp.Tool) (Approval, error) {
	now, err := canonical(tool)
	if err != nil {
		return Approval{}, err
	}
	a := Approval{Identity: identity, Server: server, Tool: tool.Name, Hash: sum(now), Rule: rule, Members: hashes(now)}
	if len(now) <= maxDefinition {
		a.Definition = now
	}
	return a, nil
}

// Differs returns the names of the members in which a tool differs from the one that was allowed,
// "description, inputSchema", and the tool as it was, nil if that is not known. Without names nothing differs.
func (a *Approval) Differs(tool *mcp.Tool) (changed string, before *mcp.Tool) {
	now, err := canonical(tool)
	if err == nil && sum(now) == a.Hash {
		return "", nil
	}
	names := differing(a.Members, hashes(now))
	if len(names) == 0 {
		names = []string{"definition"} // the file was edited
	}
	if jsonx.KindOf(a.Definition) == '{' && sum(jsonx.Canonical(a.Definition)) == a.Hash {
		before = new(mcp.Tool)
		if json.Unmarshal(a.Definition, before) != nil {
			before = nil
		}
	}
	return strings.Join(names, ", "), before
}

// With returns a list of approvals with more of them. Approvals of earlier definitions of these tools are
// removed.
func With(list []Approval, more ...Approval) []Approval {
	list = slices.DeleteFunc(slices.Clone(list), func(b Approval) bool {
		return slices.ContainsFunc(more, func(a Approval) bool {
			return a.Identity == b.Identity && a.Tool == b.Tool && (a.Rule == b.Rule || a.Hash != b.Hash)
		})
	})
	return append(list, more...)
}

// Find returns the rules of a list by which a tool of a server is allowed with its current definition, or what
// has changed since it was.
func Find(list []Approval, identity string, tool *mcp.Tool) (Found, error) {
	now, err := canonical(tool)
	if err != nil {
		return Found{}, err
	}
	var found Found
	var before *Approval // the last one of another definition
	hash := sum(now)
	for i, a := range list {
		switch {
		case a.Identity != identity || a.Tool != tool.Name:
		case a.Hash == hash:
			found.Rules = append(found.Rules, a.Rule)
		default:
			before = &list[i]
		}
	}
	if len(found.Rules) == 0 && before != nil {
		found.Changed, found.Before = before.Differs(tool)
	}
	return found, nil
}

// Rule is the rule that a person has allowed, of which an [Approval] is the part for one tool. The
// zero value is the tool by itself.
type Rule struct {
	Text string `json:"rule,omitempty"` // for people, such as "shop/*"
	When string `json:"when,omitempty"` // condition on each call; empty: none. Its language is the caller's affair
}

// Found is what approvals say about a tool.
type Found struct {
	Rules []Rule // that allow the tool with its current definition

	// If Rules is empty and the tool was allowed with another definition, Changed names the members
	// that differ, "description, inputSchema", and Before is the tool as it was, nil if that is not known.
	Changed string
	Before  *mcp.Tool
}

// Hash returns the SHA-256, in hex, of a tool's definition: all its members, unknown ones too,
// except icons and _meta. White space, escapes and the order of members make no difference. It is
// empty if the definition is not JSON.
func Hash(t *mcp.Tool) string {
	canonical, err := canonical(t)
	if err != nil {
		return ""
	}
	return sum(canonical)
}

// canonical returns a tool's definition, in the form that is hashed.
func canonical(t *mcp.Tool) ([]byte, error) {
	raw, err := jsonx.Marshal(t)
	if err != nil {
		return nil, fmt.Errorf("approvals: the definition of the tool %.60q: %w", t.Name, err)
	}
	return jsonx.Canonical(jsonx.Without(nil, raw, definition.Unseen...)), nil
}

// hashes returns the hashes of the members of a definition.
func hashes(canonical []byte) map[string]string {
	members := make(map[string]string)
	for name, value := range jsonx.Members(canonical) {
		members[string(name)] = sum(value)[:16]
	}
	return members
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// differing returns the names of the members that differ between two definitions, in alphabetical
// order.
func differing(a, b map[string]string) (names []string) {
	for _, pair := range [][2]map[string]string{{a, b}, {b, a}} {
		for name, h := range pair[0] {
			if pair[1][name] != h {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Package approval keeps which tools a person has allowed for ever.
//
// What is allowed is one tool of one server as it was defined then: a tool that changes its
// description, its schemas or anything else that a model or a person goes by is asked for again.
//
//	f, err := approval.Open("")
//	if err != nil {
//		return err
//	}
//	ok, changed, err := f.Allowed(identity, tool)
//
// Who a server is, its identity, is a text that the caller makes, such as of its URL or its
// command. A server that can choose it can take what another one was allowed.
//
// # Guarantees
//
//   - The file is replaced whole, under a lock, for its owner's eyes alone: several processes
//     may change it at once.
//   - What cannot be read allows nothing: it is an error.
//   - Nothing is forgotten but by Revoke.
package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Approval is a tool that was allowed for ever.
type Approval struct {
	Identity string    `json:"identity"` // of the server
	Server   string    `json:"server"`   // as the person calls it
	Tool     string    `json:"tool"`
	Hash     string    `json:"hash"` // of the tool's definition, see [Hash]
	By       string    `json:"by,omitempty"`
	At       time.Time `json:"at"`

	// Members are the hashes of the members of the definition, to tell what has changed.
	Members map[string]string `json:"members"`
}

// unseen are the members of a tool that say nothing about what it does.
var unseen = []string{"icons", "_meta"}

// Hash returns the SHA-256, in hex, of a tool's definition: all its members, those that nobody
// knows too, but not its icons and its _meta. Spelling, white space and the order of members make no
// difference. It is empty if the definition is no JSON.
func Hash(t *mcp.Tool) string {
	hash, _, err := hashes(t)
	if err != nil {
		return ""
	}
	return hash
}

// hashes returns the hash of a tool's definition, and those of its members.
func hashes(t *mcp.Tool) (hash string, members map[string]string, err error) {
	raw, err := jsonx.Marshal(t)
	if err != nil {
		return "", nil, fmt.Errorf("the definition of the tool %.60q: %w", t.Name, err)
	}
	canonical := jsonx.Canonical(jsonx.Without(nil, raw, unseen...))
	members = make(map[string]string)
	for name, value := range jsonx.Members(canonical) {
		members[string(name)] = sum(value)[:16]
	}
	return sum(canonical), members, nil
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// differing names the members that differ between two definitions, in alphabetical order.
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

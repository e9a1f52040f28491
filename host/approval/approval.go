// Package approval stores the tools that a person has allowed permanently.
//
// An approval is for one tool of one server with its current definition: if the description, the
// schemas or any other member that a model or a person relies on changes, the person is asked
// again.
//
//	f, err := approval.Open("")
//	if err != nil {
//		return err
//	}
//	ok, changed, err := f.Allowed(identity, tool)
//
// The identity of a server is a text from the caller, for instance its URL or its command. A
// server must not be able to choose it, or it could use the approvals of another.
//
// # Guarantees
//
//   - The file is replaced whole, under a lock, and readable only by its owner; several processes
//     may change it at once.
//   - A file that cannot be read is an error and allows nothing.
//   - Only Revoke removes an approval.
package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
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
	At       time.Time `json:"at"`

	// Members are the hashes of the members of the definition, to find out which have changed.
	Members map[string]string `json:"members"`
}

// Hash returns the SHA-256, in hex, of a tool's definition: all its members, unknown ones too,
// except icons and _meta. White space, escapes and the order of members make no difference. It is
// empty if the definition is not JSON.
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
	canonical := jsonx.Canonical(jsonx.Without(nil, raw, definition.Unseen...))
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

// Package definition makes digests of the definitions of tools, for the audit log and for permanent approvals.
package definition

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"sync"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// Unseen are the members of a tool that do not describe what it does.
var Unseen = []string{"icons", "_meta"}

// Digest returns the SHA-256 of the definition of a tool, as "sha256:" and hex: of all its members, unknown
// ones too, except [Unseen]. White space, escapes and the order of members make no difference. It is empty if
// the definition is not a JSON object.
func Digest(tool json.RawMessage) string {
	if jsonx.KindOf(tool) != '{' || jsonx.Valid(tool, 0) != nil {
		return ""
	}
	sum := sha256.Sum256(jsonx.Canonical(jsonx.Without(nil, tool, Unseen...)))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Digests keeps digests of definitions, each by the name of its tool. The zero value is empty. It may be used
// by several goroutines at once.
type Digests struct {
	mu   sync.RWMutex
	made map[string]string // guarded by mu
}

// Of returns the digest of a tool, which it computes when the tool is first asked for. Definition returns the
// definition; nil: there is none.
func (d *Digests) Of(tool string, definition func() json.RawMessage) string {
	d.mu.RLock()
	digest, ok := d.made[tool]
	d.mu.RUnlock()
	if ok {
		return digest
	}
	raw := definition()
	if raw == nil {
		return "" // not kept: names of tools that do not exist are without number
	}
	digest = Digest(raw)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.made == nil {
		d.made = map[string]string{}
	}
	d.made[tool] = digest
	return digest
}

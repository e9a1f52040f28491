package mcp

import "github.com/patchbay-dev/patchbay/internal/revision"

// Revision is a published version of the protocol, named by its date.
type Revision string

// The published revisions. Those before 2026-07-28 are legacy: they open a
// session with an initialize handshake.
const (
	V2024_11_05 Revision = "2024-11-05"
	V2025_03_26 Revision = "2025-03-26"
	V2025_06_18 Revision = "2025-06-18"
	V2025_11_25 Revision = "2025-11-25"
	V2026_07_28 Revision = "2026-07-28"
)

// Sessions reports whether a connection of the revision begins with an initialize handshake, so
// that its state belongs to a session and the server may send requests. It returns false from
// 2026-07-28 on, where each request is self-contained, and for an unknown revision.
func (r Revision) Sessions() bool {
	t := revision.Find(revision.All, string(r))
	return t != nil && t.Sessions
}

// Revisions returns all revisions that this package speaks, oldest first.
func Revisions() []Revision {
	out := make([]Revision, len(revision.All))
	for i, r := range revision.All {
		out[i] = Revision(r.Name)
	}
	return out
}

// tables returns the tables of revs, or of all revisions if revs is empty. Names
// that this package does not speak are left out.
func tables(revs []Revision) []*revision.Table {
	if len(revs) == 0 {
		return revision.All
	}
	var out []*revision.Table
	for _, t := range revision.All {
		for _, r := range revs {
			if string(r) == t.Name {
				out = append(out, t)
				break
			}
		}
	}
	return out
}

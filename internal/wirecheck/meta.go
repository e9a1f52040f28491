package wirecheck

import (
	"maps"
	"slices"

	"github.com/patchbay-dev/patchbay/internal/pattern"
)

// metaKey is a key of _meta since 2025-06-18 (basic/index, _meta): a prefix of
// labels that begin with a letter and end with a letter or digit, and a name that
// begins and ends with a letter or digit. Either may be missing.
var metaKey = pattern.Lazy(`^(?:` + label + `(?:\.` + label + `)*/)?(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?$`)

const label = `[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?`

// metaKeys reports an invalid key in value's _meta.
func metaKeys(m *envelope, s *spec, def, pointer string, value any) error {
	meta, _ := at(value, "_meta").(map[string]any)
	if s.revision < rev2506 {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(meta)) {
		if !metaKey().MatchString(key) {
			return m.fault(s, def, pointer+"/_meta"+pointerOf([]string{key}), "META-26-002", "%q is not a key of _meta", key)
		}
	}
	return nil
}

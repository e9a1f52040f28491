package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// HandleMethod registers h for a method of an extension, such as "skills/list", in place of any
// earlier handler. Requests for the method pass through the middleware.
//
// The result is a [RawResult]. Toward callers that speak 2026-07-28 it gets the members that every
// result has; if the extension wants ttlMs and cacheScope, h adds them. The handler checks in the
// capabilities of [CallFrom] whether the caller declared the extension. For a caller that did not,
// it returns [CodeMissingCapability] or falls back, as the extension says. It sends notifications
// with forward.Notify.
//
// Declare the extension itself in Server.Extensions. HandleMethod may be called at any time. It
// panics if a revision of the protocol defines the method, if the method is a notification, if h is
// nil, or if the server has a Handler.
//
// Specification: 2026-07-28, basic/versioning, Extension Negotiation.
func (s *Server) HandleMethod(method string, h HandlerFunc) {
	if method == "" || revision.Defines(method) || strings.HasPrefix(method, "notifications/") {
		panic(fmt.Errorf("mcp: HandleMethod %q: not a method of an extension; those look like %q", method, "example/list"))
	}
	if err := s.checkAdd(h == nil); err != nil {
		panic(fmt.Errorf("mcp: HandleMethod %q: %w", method, err))
	}
	s.methods.Store(method, checked(h))
}

// extension returns the handler of an extension method, or nil if there is none.
func (s *Server) extension(method string) HandlerFunc {
	h, _ := s.methods.Load(method)
	f, _ := h.(HandlerFunc)
	return f
}

// checkExtensions returns the first fault in the extensions of a field (VER-26-004).
func checkExtensions(field string, extensions map[string]json.RawMessage, depth int) error {
	for _, id := range slices.Sorted(maps.Keys(extensions)) {
		if !extensionID(id) {
			return fmt.Errorf("mcp: %s: %q is not an extension identifier: use prefix/name, such as com.example/audit", field, text.Short(id))
		}
		settings := extensions[id]
		if err := jsonx.Valid(settings, depth); err != nil || jsonx.KindOf(settings) != '{' {
			return fmt.Errorf("mcp: %s %q: the settings must be a JSON object, {} for none", field, text.Short(id))
		}
	}
	return nil
}

// declareExtensions adds the extensions to capabilities. Capabilities before 2026-07-28 are open
// objects, so they carry extensions too.
func (s *Server) declareExtensions(caps Capabilities) {
	all := maps.Clone(s.Extensions)
	if s.taskTools() {
		if all == nil {
			all = map[string]json.RawMessage{}
		}
		all[revision.Tasks] = json.RawMessage(`{}`)
	}
	if len(all) > 0 {
		caps["extensions"] = json.RawMessage(encode(all))
	}
}

// extensionID reports whether an identifier follows the rules of _meta keys with a
// prefix: labels joined by dots, a slash, a name (2026-07-28, basic/index, _meta).
func extensionID(id string) bool {
	prefix, name, ok := strings.Cut(id, "/")
	if !ok || !word(name, "-_.") {
		return false
	}
	for label := range strings.SplitSeq(prefix, ".") {
		if !word(label, "-") || !letter(label[0]) {
			return false
		}
	}
	return true
}

// word reports whether s begins and ends with a letter or digit and has only those and the
// characters of inner between them.
func word(s, inner string) bool {
	for i := range len(s) {
		c := s[i]
		switch {
		case letter(c), '0' <= c && c <= '9':
		case i == 0, i == len(s)-1, strings.IndexByte(inner, c) < 0:
			return false
		}
	}
	return s != ""
}

func letter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

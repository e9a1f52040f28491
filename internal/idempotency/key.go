// Package idempotency reads the keys with which clients mark calls of tools that are one and the same, and lets such calls
// share one execution.
//
// # Guarantees
//
//   - Calls in progress with equal keys of [Calls.Do] are executed once, and all get the result or the error.
//   - A caller that leaves does not end the execution while another one waits for it; the last one ends it.
//   - Only the first caller is asked the questions of the execution. From the first question on, the others have executions of
//     their own, and so they do if the call becomes a task.
//   - Progress and log messages go to all callers that want them. Nothing reaches a caller after its answer.
//   - A caller that reads slowly delays no other. It misses the oldest of more than 4,096 messages that wait for it.
//   - At most 4,096 executions are shared at a time; further calls have executions of their own.
package idempotency

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Meta is the member of _meta that has the key.
const Meta = "dev.patchbay/idempotencyKey"

// maxKey is the maximum number of characters of a key.
const maxKey = 128

// Has reports whether a request has a key, and returns an error for callers if it is not a string of 1 to 128 characters.
func Has(params json.RawMessage) (bool, error) {
	raw, ok := jsonx.LookupPath(params, "_meta", Meta)
	if !ok {
		return false, nil
	}
	key, err := jsonx.Unquote(raw)
	if n := utf8.RuneCountInString(key); err != nil || n == 0 || n > maxKey {
		return false, mcp.Errorf(jsonrpc.CodeInvalidParams, "the member %q of _meta must be a string of 1 to %d characters", Meta, maxKey)
	}
	return true, nil
}

package revision

import (
	"encoding/json"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// Tasks is the name of the extension for tasks in the inner form.
const Tasks = "io.modelcontextprotocol/tasks"

// RelatedTask is the key of _meta that relates a message to a task in 2025-11-25.
const RelatedTask = "io.modelcontextprotocol/related-task"

// CoreTask converts a task from the inner form to that of 2025-11-25: other names, without the
// result, and failed if the result has isError.
func CoreTask(task json.RawMessage) json.RawMessage {
	out := []byte{'{'}
	add := func(name string, v json.RawMessage) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(jsonx.AppendString(out, name), ':')
		out = append(out, v...)
	}
	for _, names := range [][2]string{
		{"taskId", "taskId"}, {"status", "status"}, {"statusMessage", "statusMessage"},
		{"createdAt", "createdAt"}, {"lastUpdatedAt", "lastUpdatedAt"},
		{"ttlMs", "ttl"}, {"pollIntervalMs", "pollInterval"},
	} {
		v, ok := jsonx.Lookup(task, names[0])
		switch {
		case names[0] == "status" && failedResult(task):
			v = json.RawMessage(`"failed"`)
		case names[0] == "ttlMs" && !ok:
			v = json.RawMessage(`null`)
		case !ok:
			continue
		}
		add(names[1], v)
	}
	return append(out, '}')
}

func failedResult(task json.RawMessage) bool {
	flag, ok := jsonx.LookupPath(task, "result", "isError")
	return ok && string(flag) == "true"
}

// InnerTask converts a task of 2025-11-25 to the inner form.
func InnerTask(task json.RawMessage) json.RawMessage {
	for _, names := range [][2]string{{"ttl", "ttlMs"}, {"pollInterval", "pollIntervalMs"}} {
		if v, ok := jsonx.Lookup(task, names[0]); ok {
			task = jsonx.With(nil, jsonx.Without(nil, task, names[0]), names[1], v)
		}
	}
	return task
}

// WithTaskSupport marks the tools of a list as able to run as tasks.
func WithTaskSupport(list json.RawMessage) json.RawMessage {
	return mapMember(list, "tools", func(tool json.RawMessage) json.RawMessage {
		return jsonx.With(nil, tool, "execution", []byte(`{"taskSupport":"optional"}`))
	})
}

// WithoutExecution removes the member execution from a list of tools.
func WithoutExecution(list json.RawMessage) json.RawMessage {
	return mapMember(list, "tools", func(tool json.RawMessage) json.RawMessage {
		return jsonx.Without(nil, tool, "execution")
	})
}

// WithRelatedTask relates a message to a task: obj is its params or result.
func WithRelatedTask(obj json.RawMessage, id string) json.RawMessage {
	meta, ok := jsonx.Lookup(obj, "_meta")
	if !ok {
		meta = json.RawMessage(`{}`)
	}
	tie := append(jsonx.AppendString([]byte(`{"taskId":`), id), '}')
	return jsonx.With(nil, obj, "_meta", jsonx.With(nil, meta, RelatedTask, tie))
}

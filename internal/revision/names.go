package revision

import (
	"encoding/json"
	"fmt"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// Known are the members of an object that some revision defines.
type Known []string

// Has reports whether name is one of the names.
func (ns Known) Has(name []byte) bool {
	for _, n := range ns {
		if string(name) == n {
			return true
		}
	}
	return false
}

// Check returns an error for a name that is not one of the names, but that a lax reader takes
// for one ([jsonx.Mistakable]).
func (ns Known) Check(name []byte) error {
	if ns.Has(name) {
		return nil
	}
	for _, known := range ns {
		if jsonx.Mistakable(name, known) {
			return fmt.Errorf("member %.100q must be written %q", name, known)
		}
	}
	return nil
}

// CheckAll calls Check for each member of an object.
func (ns Known) CheckAll(obj json.RawMessage) error {
	for name := range jsonx.Members(obj) {
		if err := ns.Check(name); err != nil {
			return err
		}
	}
	return nil
}

// The members of params in all revisions together, the most frequent first.
var (
	callNames   = Known{"name", "arguments", "_meta", "inputResponses", "requestState", "task"}
	readNames   = Known{"uri", "_meta", "inputResponses", "requestState", "task"}
	listNames   = Known{"_meta", "cursor"}
	taskNames   = Known{"taskId", "_meta", "inputResponses"}
	otherNames  = Known{"_meta"}
	elicitNames = Known{"message", "mode", "requestedSchema", "url", "elicitationId", "task", "_meta"}
	sampleNames = Known{"messages", "modelPreferences", "systemPrompt", "includeContext", "temperature", "maxTokens",
		"stopSequences", "metadata", "tools", "toolChoice", "task", "_meta"}
)

var completeNames = Known{"ref", "argument", "context", "_meta"}

// completeInside are the members of the objects in the params of completion/complete.
var completeInside = map[string]Known{
	"ref":      {"type", "name", "uri", "title"},
	"argument": {"name", "value"},
	"context":  {"arguments"},
}

// ParamNames returns the members that the params of a request may have in any revision. For an
// unknown method that is only _meta.
func ParamNames(method string) Known {
	switch method {
	case MethodCall, MethodPrompt:
		return callNames
	case MethodRead:
		return readNames
	case MethodTools, MethodPrompts, MethodResources, MethodTemplates, MethodTasks:
		return listNames
	case MethodComplete:
		return completeNames
	case MethodTask, MethodTaskUpdate, MethodTaskCancel, MethodTaskResult:
		return taskNames
	case MethodListen:
		return Known{"notifications", "_meta"}
	case MethodSubscribe, MethodUnsubscribe:
		return Known{"uri", "_meta"}
	case MethodSetLevel:
		return Known{"level", "_meta"}
	case MethodElicit:
		return elicitNames
	case MethodSample:
		return sampleNames
	}
	return otherNames
}

// CheckInside is CheckAll for a member of the params of a method, if a revision defines its
// content.
func CheckInside(method string, member []byte, value json.RawMessage) error {
	if method != MethodComplete {
		return nil
	}
	return completeInside[string(member)].CheckAll(value)
}

// CheckParams returns an error if a lax reader finds another value in params than an exact one:
// if a member is not defined but a lax reader takes it for a defined one ([jsonx.Mistakable]). A
// decision on such params could be bypassed. Arguments of tools and prompts, and the content of
// _meta, are not checked.
func CheckParams(method string, params json.RawMessage) error {
	names := ParamNames(method)
	for name, value := range jsonx.Members(params) {
		if err := names.Check(name); err != nil {
			return err
		}
		if err := CheckInside(method, name, value); err != nil {
			return err
		}
	}
	return nil
}

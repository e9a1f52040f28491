package wirecheck

import (
	"maps"
	"slices"
)

// take returns the request that a response answers, or an error if there is none.
func (c *Checker) take(m *envelope) (*request, error) {
	asker := m.sender.other()
	if m.id == "" {
		return nil, m.fault(c.fixed, "JSON-RPC response", "/id", "BASE-26-006", "an id is a string or an integer")
	}
	r := c.open[asker][m.id]
	if r == nil {
		if c.answered[asker][m.id] {
			return nil, m.fault(c.fixed, "JSON-RPC response", "/id", "BASE-26-006", "a second response to one request")
		}
		return nil, m.fault(c.fixed, "JSON-RPC response", "/id", "BASE-26-006", "no request of the %v has this id", asker)
	}
	delete(c.open[asker], m.id)
	c.answered[asker][m.id] = true
	// PROG-25-001: the token of a task is valid after the first answer.
	if w := c.tokens[asker][idKey(at(r.params, "_meta", "progressToken"))]; w != nil && at(m.value, "result", "task") == nil {
		w.done = true
	}
	return r, nil
}

func (c *Checker) result(m *envelope) error {
	r, err := c.take(m)
	if err != nil {
		return err
	}
	result := m.value["result"]
	s := r.spec
	if r.method == "initialize" && m.sender == server {
		if s, err = c.settle(m, s, result); err != nil {
			return err
		}
	}
	envelopeDef := "JSONRPCResponse"
	if s.has("JSONRPCResultResponse") { // JSONRPCResponse is a union there
		envelopeDef = "JSONRPCResultResponse"
	}
	if err := s.validate(envelopeDef, m.pointer, m.value); err != nil {
		return err
	}
	if err := metaKeys(m, s, r.result, "/result", result); err != nil {
		return err
	}
	if s.modern {
		return c.modernResult(m, s, r, result)
	}
	if err := foreign(m, s, r.result, "/result", result,
		[]string{"resultType", "ttlMs", "cacheScope", "inputRequests", "requestState"}, []string{metaServerInfo}); err != nil {
		return err
	}
	// TASK-25-029 and 015: a server that accepts a task answers with it; one without tasks
	// answers as to an ordinary request.
	if s.has("CreateTaskResult") && at(r.params, "task") != nil && at(result, "task") != nil {
		if id := textOf(at(result, "task", "taskId")); id != "" {
			c.tasks[r.sender][id] = r.result
		}
		return s.validate("CreateTaskResult", m.pointer+"/result", result)
	}
	return c.typedResult(m, s, r, result)
}

// settle reads the revision from the result of initialize.
func (c *Checker) settle(m *envelope, s *spec, result any) (*spec, error) {
	version := textOf(at(result, "protocolVersion"))
	loaded := specs[version]
	switch {
	case c.fixed != nil && version != c.fixed.revision:
		return nil, m.fault(s, "InitializeResult", "/result/protocolVersion", "", "version %q on a connection of %s", version, c.fixed.revision)
	case loaded == nil || version >= rev2607:
		return nil, m.fault(s, "InitializeResult", "/result/protocolVersion", "", "initialize cannot settle on version %q", version)
	}
	c.negotiated = loaded()
	return c.negotiated, nil
}

func (c *Checker) typedResult(m *envelope, s *spec, r *request, result any) error {
	if err := s.validate(r.result, m.pointer+"/result", result); err != nil {
		return err
	}
	if object, ok := result.(map[string]any); ok && r.result == "EmptyResult" {
		for name := range object {
			if name != "_meta" && name != "resultType" {
				return m.fault(s, r.result, "/result", "", "the result of %s is empty and has the member %q", r.method, name)
			}
		}
	}
	return nil
}

// modernResult checks a result of 2026-07-28.
func (c *Checker) modernResult(m *envelope, s *spec, r *request, result any) error {
	switch kind := textOf(at(result, "resultType")); {
	case m.sender == client:
		return m.fault(s, "JSON-RPC response", "", "MRTR-26-001", "a client does not send responses")
	case kind == "complete":
	case kind == "input_required":
		if !rounds(r.method) {
			return m.fault(s, "InputRequiredResult", "/result/resultType", "MRTR-26-002", "%s has no input rounds", r.method)
		}
		if err := s.validate("InputRequiredResult", m.pointer+"/result", result); err != nil {
			return err
		}
		return c.inputRequired(m, s, r, result)
	case kind == "task":
		if r.method != "tools/call" || at(r.params, "_meta", metaCapabilities, "extensions", extTasks) == nil {
			return m.fault(s, "CreateTaskResult", "/result/resultType", "XTASK-26-001", "a task for a request that did not declare %s", extTasks)
		}
		return s.validate("CreateTaskResult", m.pointer+"/result", result)
	case slices.Contains(c.ResultTypes, kind):
		return s.validate("Result", m.pointer+"/result", result)
	default:
		return m.fault(s, r.result, "/result/resultType", "BASE-26-009", "resultType %q", kind)
	}
	if err := c.typedResult(m, s, r, result); err != nil {
		return err
	}
	for _, name := range []string{"inputRequests", "requestState"} {
		if at(result, name) != nil && rounds(r.method) {
			return m.fault(s, r.result, "/result/"+name, "", "belongs to resultType input_required")
		}
	}
	if r.method == "subscriptions/listen" {
		if got := idKey(at(result, "_meta", metaSubscription)); got != m.id {
			return m.fault(s, r.result, "/result/_meta", "META-26-017", "subscriptionId is not the id of the request")
		}
		if l := c.listens[m.id]; l != nil {
			l.ended = true
		}
	}
	return nil
}

// inputRequired checks that the server asks for input, and only for kinds that the client
// declared with this request.
func (c *Checker) inputRequired(m *envelope, s *spec, r *request, result any) error {
	const def = "InputRequiredResult"
	inputs, _ := at(result, "inputRequests").(map[string]any)
	if at(result, "inputRequests") == nil && at(result, "requestState") == nil {
		return m.fault(s, def, "/result", "MRTR-26-013", "neither inputRequests nor requestState")
	}
	declared, _ := at(r.params, "_meta", metaCapabilities).(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(inputs)) {
		input := inputs[key]
		missing := ""
		switch at(input, "method") {
		case "roots/list":
			if declared["roots"] == nil {
				missing = "roots"
			}
		case "sampling/createMessage":
			if declared["sampling"] == nil {
				missing = "sampling"
			} else if at(input, "params", "tools") != nil && at(declared, "sampling", "tools") == nil {
				missing = "sampling.tools"
			}
		case "elicitation/create":
			modes, _ := declared["elicitation"].(map[string]any)
			switch url := at(input, "params", "mode") == "url"; {
			case modes == nil:
				missing = "elicitation"
			case url && modes["url"] == nil:
				missing = "elicitation.url"
			case !url && modes["form"] == nil && len(modes) > 0: // {} means form
				missing = "elicitation.form"
			}
		}
		if missing != "" {
			return m.fault(s, def, "/result/inputRequests"+pointerOf([]string{key}), "MRTR-26-014", "the client did not declare %s", missing)
		}
	}
	return nil
}

// error checks an error response.
func (c *Checker) error(m *envelope) error {
	s, id := c.fixed, m.value["id"]
	if _, hasID := m.value["id"]; hasID && id != nil {
		r, err := c.take(m)
		if err != nil {
			return err
		}
		s = r.spec
		if l := c.listens[m.id]; l != nil && r.method == "subscriptions/listen" {
			l.ended = true
		}
	} else if s == nil {
		if s = c.negotiated; s == nil {
			s = specs[rev2607]()
		}
	}
	value := m.value
	def := "JSONRPCErrorResponse"
	if s.has("JSONRPCError") {
		def = "JSONRPCError"
		if id == nil {
			// The schemas before 2025-11-25 require an id even if none could be read; JSON-RPC
			// 2.0, section 5, requires null then.
			if _, null := value["id"]; !null {
				return m.fault(s, def, "", "BASE-26-012", "an error without id")
			}
			value = maps.Clone(value)
			value["id"] = "unknown"
		}
	}
	if err := s.validate(def, m.pointer, value); err != nil {
		return err
	}
	if s.modern && m.sender == client {
		return m.fault(s, def, "", "MRTR-26-001", "a client does not send responses")
	}
	code, ok := number(at(value, "error", "code"))
	if !ok {
		return m.fault(s, def, "/error/code", "BASE-26-014", "not an integer")
	}
	typed, isTyped := s.errorsByCode[code]
	switch {
	case s.modern && (code == -32002 || code == -32042):
		return m.fault(s, def, "/error/code", "BASE-26-020", "code %d of an older revision", code)
	case s.modern && code >= -32099 && code <= -32020 && !isTyped:
		return m.fault(s, def, "/error/code", "BASE-26-018", "code %d is reserved and has no meaning", code)
	case !s.modern && code >= -32022 && code <= -32020:
		return m.fault(s, def, "/error/code", "BASE-26-019", "code %d of 2026-07-28", code)
	case isTyped && typed.whole:
		return s.validate(typed.def, m.pointer, value)
	case isTyped:
		return s.validate(typed.def, m.pointer+"/error", value["error"])
	}
	return nil
}

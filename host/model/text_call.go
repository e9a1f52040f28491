package model

import "encoding/json"

// Arguments returns the arguments of a call as JSON: valid JSON unchanged, an empty text as {},
// and any other text as a JSON string.
func Arguments(text string) json.RawMessage {
	switch {
	case text == "":
		return json.RawMessage("{}")
	case json.Valid([]byte(text)):
		return json.RawMessage(text)
	}
	quoted, _ := json.Marshal(text)
	return quoted
}

// callsIn returns the calls in a JSON value, or nil if there are none. It looks into at most unwrap
// levels of objects around a call.
func callsIn(raw []byte, known map[string]bool, unwrap int) []Call {
	if !json.Valid(raw) {
		if raw = repair(raw); !json.Valid(raw) {
			return nil
		}
	}
	if raw[0] == '[' {
		var items []json.RawMessage
		if unwrap == 0 || json.Unmarshal(raw, &items) != nil {
			return nil
		}
		var calls []Call
		for _, item := range items {
			found := callsIn(item, known, unwrap-1)
			if found == nil {
				return nil
			}
			calls = append(calls, found...)
		}
		return calls
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil {
		return nil
	}
	for _, key := range []string{"tool_calls", "tool_call", "function_call", "function"} {
		if inner := object[key]; len(inner) > 0 && (inner[0] == '{' || inner[0] == '[') {
			if unwrap == 0 {
				return nil
			}
			return callsIn(inner, known, unwrap-1)
		}
	}
	name, nameKey := "", ""
	for _, nameKey = range []string{"tool", "name", "tool_name", "function"} {
		if json.Unmarshal(object[nameKey], &name) == nil && name != "" {
			break
		}
	}
	if name == "" {
		return nil
	}
	var arguments json.RawMessage
	argumentsKey := ""
	for _, key := range []string{"arguments", "parameters", "args", "params", "input", "tool_input"} {
		if object[key] != nil {
			arguments, argumentsKey = object[key], key
			break
		}
	}
	if !known[name] {
		delete(object, "id")
		if nameKey != "tool" || argumentsKey != "arguments" || len(object) != 2 {
			return nil
		}
	}
	var text string
	switch {
	case argumentsKey == "" && nameKey == "tool": // they may stand beside the name
		delete(object, "tool")
		arguments, _ = json.Marshal(object)
	case argumentsKey == "" && len(object) > 1:
		return nil
	case argumentsKey == "" || string(arguments) == "null":
		arguments = json.RawMessage("{}")
	case json.Unmarshal(arguments, &text) == nil:
		arguments = Arguments(text)
	}
	return []Call{{Name: name, Arguments: arguments}}
}

// repair returns JSON without trailing commas, and with the control characters of its strings
// escaped. Valid JSON has neither.
func repair(raw []byte) []byte {
	out := make([]byte, 0, len(raw)+16)
	comma := -1 // place in out of the last comma, with only white space behind it
	quoted, escaped := false, false
	for _, ch := range raw {
		switch {
		case quoted && ch < ' ':
			out = append(out, '\\', 'u', '0', '0', "0123456789abcdef"[ch>>4], "0123456789abcdef"[ch&15])
			escaped = false
			continue
		case escaped:
			escaped = false
		case quoted && ch == '\\':
			escaped = true
		case ch == '"':
			quoted = !quoted
			comma = -1
		case quoted:
		case ch == ',':
			comma = len(out)
		case (ch == '}' || ch == ']') && comma >= 0:
			out[comma] = ' '
			comma = -1
		case ch != ' ' && ch != '\t' && ch != '\r' && ch != '\n':
			comma = -1
		}
		out = append(out, ch)
	}
	return out
}

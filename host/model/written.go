package model

import "encoding/json"

// Written returns the name of a tool that a text calls, in a form that [Text] understands, or "" if
// there is none. Models that cannot call tools answer so, unless they are opened with Text.
func Written(text string, tools []Tool) (tool string) {
	known := newSplitter(tools, nil, nil).known
	s := newSplitter(tools, func(string) {}, func(name string, _ json.RawMessage) {
		if tool == "" && known[name] {
			tool = name
		}
	})
	s.add(text)
	s.end(false)
	return tool
}

package host

import (
	"encoding/json"

	"github.com/patchbay-dev/patchbay/host/model"
)

// Settings are the settings of a conversation. They may be copied to another one.
type Settings struct {
	Model model.Model // nil: Host.Model

	// Parameters choose how the model answers. They do not apply to completions for servers, and
	// MaxTokens not to summaries.
	Parameters model.Parameters

	// Mode bounds what the model may do. The zero value is ModeAsk.
	Mode Mode

	// System is the system prompt. In it, {tools} stands for the list of the offered tools, with
	// their descriptions. The instructions of servers follow it.
	System string

	// Allow lists tools that may be called without asking in this conversation, like Host.Allow.
	Allow []string

	// Schema is a JSON Schema for the last answer of each turn; Reply.Text is then JSON. If an
	// answer does not fit, the model is told why and tries again, at most twice. Nil: any text.
	Schema json.RawMessage
}

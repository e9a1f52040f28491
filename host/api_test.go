package host_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/modeltest"
	"github.com/patchbay-dev/patchbay/mcp"
)

// The requests of the loop follow the rules of all APIs, which modeltest checks: searched tools,
// results that are read on, an answer that must fit a schema, a summary, an image, a required tool,
// and the last answer after the step limit.
func TestLoopOverEveryAPI(t *testing.T) {
	const script = `
turns:
  - when: {user: Mail Ada, tools: [search_tools, describe_tool, read_more, read_resource], system: "151 tools of|152 tools of"}
    answer: [call: {name: search_tools, arguments: {query: send mail}}]
  - when: {results: {search_tools: "many_sendMail"}, tools: [many_sendMail]}
    answer: [{text: Sending.}, {call: {name: many_sendMail, arguments: {to: ada}}}, {call: {name: many_long, arguments: {}}}]
  - when: {results: {many_sendMail: "^sent to ada$", many_long: "read_more with id"}}
    answer: [call: {name: read_more, arguments: {id: t1, offset: 99990}}]
  - when: {results: {read_more: "that was the end"}}
    answer: [text: It is Oslo.]
  - when: {user: The answer does not fit}
    answer: [text: '{"city": "Oslo"}']
  - when: {user: Write a summary, choice: none}
    answer: [text: Ada has mail.]
  - when: {user: "(?s)Ada has mail.*@lib:app:picture #many/sendMail", choice: many_sendMail, images: 1, length: 0}
    answer: [call: {name: many_sendMail, arguments: {to: eve}}]
  - when: {results: {many_sendMail: "sent to eve"}}
    answer: [call: {name: many_sendMail, arguments: {to: bob}}]
  - when: {results: {many_sendMail: "sent to bob"}}
    answer: [call: {name: many_sendMail, arguments: {to: joe}}]
  - when: {results: {many_sendMail: "sent to joe"}}
    answer: [call: {name: many_sendMail, arguments: {to: ann}}]
  - when: {results: {many_sendMail: "sent to ann"}, choice: none}
    answer: [text: '{"city": "all over"}']
`
	for _, api := range []string{"chat", "responses", "messages", "text"} {
		t.Run(api, func(t *testing.T) {
			srv := many(150)
			mcp.AddTool(srv, mcp.Tool{Name: "sendMail", Description: "Sends a mail."}, func(_ context.Context, in struct {
				To string `json:"to"`
			}) (string, error) {
				return "sent to " + in.To, nil
			})
			mcp.AddTool(srv, mcp.Tool{Name: "long"}, func(context.Context, struct{}) (string, error) { return strings.Repeat("x", 100_000), nil })
			m := modeltest.Open(t, api, modeltest.MustParse(script))
			h := newHost(t, &host.Host{Model: m, Allow: []string{"many/*"}, Limits: host.Limits{Steps: 5}}, inMemory("many", srv), inMemory("lib", library()))
			c := h.NewConversation()
			c.Schema = json.RawMessage(citySchema)
			r, err := c.Send(t.Context(), "Mail Ada.")
			if err != nil || r.Text != `{"city": "Oslo"}` || r.Steps != 5 {
				t.Fatalf("Send = %+v, %v", r, err)
			}
			if r, err = c.Summarise(t.Context(), ""); err != nil || r.Text != "Ada has mail." {
				t.Fatalf("Summarise = %+v, %v", r, err)
			}
			c.System = "Once more."
			h.Limits.Steps = 4
			r, err = c.Send(t.Context(), "@lib:app:picture #many/sendMail")
			if err != nil || r.Early != host.TooManySteps || r.Text != `{"city": "all over"}` {
				t.Fatalf("Send = %+v, %v", r, err)
			}
		})
	}
}

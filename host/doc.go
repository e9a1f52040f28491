// Package host is a language model with servers: the agent loop, with a person in control.
//
// A [Host] has a model, servers and a person. In a [Conversation] the model sees the tools of
// all servers, calls are approved, made, and answered, until the model has its answer:
//
//	h := &host.Host{Model: m, Person: person}
//	h.Add(host.Server{Name: "shop", Open: func(ctx context.Context, c *mcp.Client) (host.Session, error) {
//		return c.Start(ctx, exec.Command("shop-server"))
//	}})
//	defer h.Close()
//	answer, err := h.NewConversation().Send(ctx, "Two bananas, please.")
//
// # Guarantees
//
//   - No tool is called that was not allowed: by the person, by [Host.Allow], by what was allowed
//     for ever and has not changed since, or as read-only by a server that is trusted.
//   - A call that may have changed something is made at most once. If its answer is lost the
//     model is told that nobody knows what came of it.
//   - Each call of the model has one result in the conversation, also if it was denied,
//     cancelled, or not there.
//   - Every step is bounded, in time and number; the end of the context ends all of them.
//   - Close leaves no process and no goroutine behind.
package host

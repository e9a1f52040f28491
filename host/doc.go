// Package host connects a language model with MCP servers: it runs the agent loop, with a person in
// control.
//
// A [Host] has a model, servers and a person. In a [Conversation] the model sees the tools of all
// servers. The host asks for approval of its calls, makes them and returns their results, until the
// model answers:
//
//	h := &host.Host{Model: m, Person: person}
//	h.Add(host.Server{Name: "shop", Open: func(ctx context.Context, c *mcp.Client) (mcp.Handler, error) {
//		return c.Start(ctx, exec.Command("shop-server"))
//	}})
//	defer h.Close()
//	answer, err := h.NewConversation().Send(ctx, "Two bananas, please.")
//
// The host adds tools of its own: read_more reads the rest of a text that was cut, and
// read_resource reads resources that servers list or link to. If there are too many tools,
// search_tools and describe_tool find the right ones.
//
// A person can mention resources, prompts and tools in a message, see [Conversation.Send];
// [Host.Complete] completes such mentions.
//
// # Servers
//
// Servers start in parallel, each with its own state: a server that is slow, failing or waiting for
// a login delays neither the others nor the person. A server that ends is restarted, with growing
// pauses. The host checks now and then that a quiet server still answers. A server that does not
// answer is failing, and after a while the host reconnects to it. [Host.Servers] reports all of
// that, with latency and errors.
//
// Servers with the same [Server].Group appear to the model as one server with the name of the
// group. They must be interchangeable: any of them can serve any call. The host distributes calls
// by latency and errors, and avoids a server that fails for a while. If a server has certainly not
// accepted a call, the call goes to the next one. Once a server has begun a call, it stays there,
// with its questions, progress, task and subscription. State is not shared: the next call may go to
// another server, so servers that keep state in a session, as older ones may, must not form a
// group. An approval applies to the whole group, which the person has configured as one; when a
// server joins or leaves the group, the person is asked again.
//
// # Questions from servers
//
// Forms, pages to visit and sampling requests go to the [Person], with the conversation and the
// call that they belong to. Each conversation has its own session with each server, so that
// questions reach the right conversation. A server before 2026-07-28 need not say which call its
// question belongs to: after its first such question, conversations take turns there, and if a
// conversation has several calls in progress, the call of the question is unknown. The model that
// answers a sampling request sees only that request. The number of questions is bounded, see
// [Limits]. Without a Person, the host declines forms and pages, and does not offer sampling unless
// [Host].AutoSample is set.
//
// # Guarantees
//
//   - A tool is called only if it is allowed: by the person, by [Host.Allow] or [Conversation.Allow], by a permanent
//     approval of the tool as it is now, or because a trusted server declares it read-only.
//   - In [ModeReadOnly] a tool is called only if it declares itself read-only as well. A mode never allows a call, and
//     neither does a [Hook]; each may refuse it, before a person is asked.
//   - A call that may have changed something is made at most once. If its answer is lost, even
//     because the program was killed, the model is told that the outcome is unknown, and the
//     conversation does not make the same call again until the person allows it, whatever else
//     allows the tool.
//   - A call goes only to the server that it was approved for, even if another has taken its name
//     since, and only to the tool as it was defined then: immediately before each attempt, the host
//     compares the definition with the one that the server lists now. A tool that has changed is
//     not called; the model is told, and the next call is decided anew.
//   - The arguments that the person sees are sent byte for byte.
//   - Each call of the model has exactly one result in the conversation, even if it was denied or
//     cancelled, or its tool does not exist.
//   - Every step is bounded in time and number, and ends with the context. A server that does not
//     answer delays one step, not each.
//   - The system prompt and the order of the tools change only if servers do, so that prompt caches
//     stay useful.
//   - [Conversation].Entries is never rewritten to save room. Requests leave out what does not fit
//     the window of the model, the oldest first, and never contain a result without its call. A
//     request that the model rejects as too long is made again with less, while there is something
//     to leave out. The last message of the person is never cut.
//   - Close leaves no process and no goroutine behind.
package host

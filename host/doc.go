// Package host is a language model with servers: the agent loop, with a person in control.
//
// A [Host] has a model, servers and a person. In a [Conversation] the model sees the tools of
// all servers, calls are approved, made, and answered, until the model has its answer:
//
//	h := &host.Host{Model: m, Person: person}
//	h.Add(host.Server{Name: "shop", Open: func(ctx context.Context, c *mcp.Client) (mcp.Handler, error) {
//		return c.Start(ctx, exec.Command("shop-server"))
//	}})
//	defer h.Close()
//	answer, err := h.NewConversation().Send(ctx, "Two bananas, please.")
//
// The host adds a few tools of its own: read_more reads on in what was cut, read_resource reads
// what servers offer or link to, and if there are too many tools, search_tools and describe_tool
// find those that are needed.
//
// A person mentions resources, prompts and tools in what they say, see [Conversation.Send], and
// [Host.Complete] helps them to.
//
// # Servers
//
// Servers start side by side, each with its own state: one that is slow, failing or in want of a
// login delays neither the others nor the person. One that ends is started again with growing
// pauses. One that is quiet is asked now and then whether it is there; it is failing as long as it
// does not answer, and after some time its connection is opened anew. [Host.Servers] tells of all
// of that, and of latency and errors.
//
// Servers of one [Server].Group are one server to the model, named after the group: several of the
// same kind, of which any can do any call. The calls are spread over them by latency and errors;
// one that fails is left alone for a while. A call that one of them has surely not taken goes to
// the next; what has begun at one stays there to its end, as do its questions, its progress, its
// task or a subscription. What a server remembers from one call to the next is its own, and the
// next call may go to another: servers that keep something in their session, as older ones may,
// are no group. What is allowed is allowed for the group: it is the same tool to the person, and
// whoever it goes to was put there by them. It is asked anew when a server joins or leaves.
//
// # Questions of servers
//
// Forms, pages to visit and requests for completions go to the [Person], with the conversation and
// the call that they belong to. Each conversation has a session of its own with each server, so that
// questions find it. A server before 2026-07-28 need not say which call its question belongs to: once
// it has asked, conversations take turns there, and of several calls in one conversation it is not
// known which has asked. The model that completes something for a server knows what is in the request
// and nothing else. How often a server may ask is bounded; see
// [Limits]. With nobody there, forms and pages are declined, and completions are not offered,
// unless [Host].AutoSample says so.
//
// # Guarantees
//
//   - No tool is called that was not allowed: by the person, by [Host.Allow], by what was allowed
//     for ever and has not changed since, or as read-only by a server that is trusted.
//   - A call that may have changed something is made at most once. If its answer is lost, also
//     as the program was killed, the model is told that nobody knows what came of it, and the same
//     call is not made again in the conversation before the person has allowed that, whatever else
//     is allowed.
//   - A call goes only to the server that it was decided about, even if another has taken its name
//     since, and only to the tool as it was defined then: immediately before each attempt the
//     definition is compared with the one that the server lists now. A tool that has changed
//     meanwhile is not called; the model is told, and the next call is decided anew.
//   - What the person sees of a call when they are asked is what is sent, byte for byte.
//   - Each call of the model has one result in the conversation, also if it was denied,
//     cancelled, or not there.
//   - Every step is bounded, in time and number; the end of the context ends all of them. A
//     server that does not answer delays one step, not each.
//   - What the model is told before the talk, and the order of its tools, change only if servers
//     do: caches of prompts are of use.
//   - What was said stays as it was in [Conversation].Entries. What does not fit the window of
//     the model is left out of requests, the oldest first, and never a result without its call.
//   - Close leaves no process and no goroutine behind.
package host

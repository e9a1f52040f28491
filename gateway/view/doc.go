// Package view makes a smaller server of a larger one: a part of the tools, prompts and resources of a
// gateway, for some of its callers, under other names, or three tools that find and call all others.
//
//	v := &view.View{Name: "support", Tools: []string{"jira_search", "kb_*"}}
//	handler := v.Middleware()(gw)
//
// # Guarantees
//
//   - Nothing outside of the view can be told from something that does not exist: in lists, calls,
//     prompts, completions, resources, subscriptions and tasks. Instructions do not name it.
//   - A View adds no rights: policies, limits and audit of the handler behind it see the inner call.
//   - With [Search], the inner call is the request that the caller would have made itself: its
//     questions, progress, cancellation and tasks work as without.
//   - A task belongs to the view in which it began; a view with everything has those of all others too.
//   - Views with one [Memory] go on where the one before them stopped.
package view

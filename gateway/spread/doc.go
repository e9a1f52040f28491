// Package spread makes one server of several that offer the same, its replicas. [Group.Open] is the Open
// of a [gateway.Source]:
//
//	group := &spread.Group{Name: "jira", Replicas: []spread.Replica{
//		{Name: "jira.example", Open: dial("https://jira.example/mcp")},
//		{Name: "jira2.example", Open: dial("https://jira2.example/mcp")},
//	}}
//	defer group.Close()
//	go gw.Run(ctx, gateway.Source{Name: "jira", Open: group.Open})
//
// # Guarantees
//
//   - Of two random replicas, a call goes to the one with less load: its expected time for a call, times
//     the number of open calls, times 1 + its share of failures. A replica that has stopped to answer
//     has more load with each second.
//   - Each replica has a [breaker.Breaker]. While it is open, the replica gets no calls. A replica is
//     probed on a connection of its own, by ping before 2026-07-28, else by server/discover. So is one that
//     answers nothing for 5 seconds although requests are open, after a ping over their connection.
//   - A request that was not sent to a replica goes to another one. A request that only reads, and was
//     lost, is repeated on another replica, also as soon as the breaker opens. A call of a tool that was
//     lost fails, and its error says that the tool may have run; with Trusted, a tool that the server
//     declares read-only or idempotent is repeated.
//   - A replica that answers wrongly, such as with a web page, is treated like one that was lost. A request
//     that it refuses with 401, 403, 404, 405 or 429 goes to another one; if that one answers, the first has failed.
//   - State stays where it is: a session before 2026-07-28 with a connection of its own, a task and a
//     call with an open question belong to one replica. If that fails, the caller is told.
//   - Lists come from one replica as long as it works. A call of a tool goes only to replicas that list
//     it. A replica that differs from the one with the lists is reported once: other tools, other
//     definitions, or another version.
//   - [Group.Restart] restarts a replica while calls go on at the others, and wait if there is none. Calls also
//     wait if the only replica that is left is being connected to, at most a minute, unless the last attempt failed.
package spread

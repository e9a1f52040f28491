// Package inspector is the page of Patchbay: what a person sees in a browser of servers, their tools, and what is on the
// wire. [Page] is an http.Handler. The program puts it at the origin of a gateway ("patchbay up") or on a listener of its
// own ("patchbay inspect").
//
// # Paths
//
//	GET  /              the page; also below the paths of its screens
//	GET  /assets/NAME   scripts and styles, by hash
//	POST /ui/in         the code of a link becomes a cookie
//	POST /ui/out        the cookie is no longer valid
//	     /ui/mcp/NAME   MCP: the server NAME with the whole chain in front; * is all servers
//	POST /ui/form       a schema becomes a form, as deep as asked for
//	POST /ui/check      the faults of a value, with JSON pointers
//	POST /ui/paste      a call of a tool for the command line, for curl, as a test
//	POST /ui/view       how a view of MCP Apps is shown; /sandbox: its frame, on another host
//	GET  /ui/state      the servers, what the person may do, and lines by which hosts connect to the gateway
//	GET  /ui/metrics    what callers got from the servers, by the minute or the hour
//	GET  /ui/logs/NAME  the last lines of a server, and those that come
//	POST /ui/restart/NAME, /ui/disable/NAME, /ui/enable/NAME
//	GET  /ui/inbox      questions of servers that wait for other callers
//	POST /ui/answer/ID  an answer beside the caller
//	POST /ui/explain    what the gateway would do with a call, and why
//	GET  /ui/audit      lines of the audit log; /ui/audit/verify: whether it is whole
//	GET  /ui/rows, /ui/row/N, /ui/compare, /ui/trace
//	                    the wire, or with file=NAME a recording
//	GET  /ui/recordings the files of recordings
//	POST /ui/replay     sends recorded requests again, and compares the answers
//	POST /ui/judge      what other rules would do with a recording
//	GET  /ui/events     one stream of server-sent events, in batches, that goes on where it broke
//
// # Guarantees
//
//   - A request is answered only for the host of the listener, from the page itself, and with its cookie.
//   - Calls from the page pass the same middleware as calls from hosts, under the principal of the person.
//   - No path adds a server or changes a command.
//   - Nothing is loaded from elsewhere: the content security policy of every answer forbids it.
package inspector

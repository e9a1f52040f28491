// Package fetch is a server that fetches pages of the web for a model: one tool and one prompt,
// both named fetch.
//
// From the command line:
//
//	patchbay call fetch/fetch url=https://example.com/
//	patchbay serve fetch --http 127.0.0.1:7420
//
// From Go:
//
//	http.Handle("/mcp", fetch.New(fetch.Options{}))
//
// # Results
//
// HTML is returned as Markdown, as text, or as its source; JSON, XML and other text unchanged, in
// UTF-8; PNG, JPEG, GIF and WebP of up to 1 MiB as a picture. Other content is refused, with its
// type and size. Of HTML the main part is kept if the page marks one; scripts, styles, navigation,
// form controls, the page's footer and hidden elements are left out.
//
// A result has up to three blocks of text: the origin and status of the page, a part of the page,
// and how to read the next part. A part is counted in characters (Unicode code points) of the
// resulting text: max_length of them, from start_index on. A page that was read in part is cached
// for five minutes, for the same caller; at most four are.
//
// An answer with a status of 400 or more is a tool error that includes the page.
//
// # Connections
//
// The server connects to public addresses. Addresses of this machine, of private, shared,
// link-local and reserved networks, and IPv6 addresses that stand for such ones, are refused when
// they are dialled: also after a redirect, and after a DNS name has changed. [Options.AllowPrivate]
// and [Options.AllowHosts] permit them. Proxies from the environment are not used, because they
// would bypass this check.
//
// At most [Options.MaxRedirects] redirects are followed, but not from https to http. URLs with a
// user name or password are refused. No cookies, credentials or referrer are sent.
//
// Like a browser, the server fetches pages that its user asks for, and does not read robots.txt.
// User-Agent names it.
//
// # Guarantees
//
//   - A fetch ends within [Options.Timeout], and with its call.
//   - No more than [Options.MaxBytes] of a body are read, after decompression. A cut result says
//     so.
//   - Work and memory are proportional to that for any content: HTML is read as a stream and never
//     becomes a tree.
//   - Scripts do not run. Content that only a script creates is missing.
package fetch

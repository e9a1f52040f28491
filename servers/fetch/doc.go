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
// # What comes back
//
// HTML as Markdown, as text, or as its source; JSON, XML and other text as it is, in UTF-8;
// PNG, JPEG, GIF and WebP of up to 1 MiB as a picture. Other content is refused, with its type
// and size. Of HTML the main part is kept if the page marks one; scripts, styles, navigation,
// forms' controls, the page's footer and what is hidden are left out.
//
// A result has up to three blocks of text: where the page is from and what it answered,
// a part of the page, and how to read on. A part is counted in characters (Unicode code
// points) of the text that was made, from start_index on, max_length of them. A page that was
// read in part is kept for five minutes, for the same caller to read on; four are, at most.
//
// An answer with a status of 400 or more is a tool error that has the page nevertheless.
//
// # Where it connects to
//
// To public addresses. Addresses of this machine, of private, shared, link-local and
// reserved networks, and IPv6 addresses that stand for such ones, are refused when they are
// about to be dialled: also after a redirect, and whatever a name resolved to
// before. [Options.AllowPrivate] and [Options.AllowHosts] permit them. Proxies of the environment are
// not used, as they would connect for the server where it does not.
//
// Redirects are followed to [Options.MaxRedirects], but not from https to http. URLs with a
// user name or password are refused. No cookies, credentials or referrer are sent.
//
// The server acts when its user asks for a page, as a browser does, and does not read
// robots.txt. It says who it is in User-Agent.
//
// # Guarantees
//
//   - A fetch ends within [Options.Timeout], and with the call it is for.
//   - No more than [Options.MaxBytes] of a body are read, after decompression. What is cut says so.
//   - Work and memory are proportional to that, whatever the bytes are: HTML is read as a
//     stream and never becomes a tree.
//   - Pages are not run. What only a script would show is not there.
package fetch

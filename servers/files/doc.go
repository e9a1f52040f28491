// Package files is a server for the files below some folders: tools to list, read,
// search, write, edit and move them, and a resource for each file, to be subscribed to.
//
// From the command line, on the working folder or on the folders that are named:
//
//	patchbay call files/search text=TODO glob='**/*.go'
//	patchbay serve files --read-only docs src
//	patchbay serve files --http 127.0.0.1:7420 ~/notes
//
// From Go:
//
//	http.Handle("/mcp", files.New(files.Options{Roots: []string{"docs"}, ReadOnly: true}))
//
// # Features
//
//	roots        the folders, their names and how they may be used
//	list         what is in a folder
//	tree         what is in a folder and those below it
//	search       files by name (glob), lines by content (regular expression), or both
//	info         size, mode, times, type of one file or folder
//	read         a file: text by lines, pictures and sounds as such, the rest as a blob
//	read_many    several files of text
//	write        makes or replaces a file
//	edit         replaces passages of a file and answers with a diff; also on trial
//	move         renames or moves; never overwrites
//	file:///{+path}  every file, as a resource
//
// With [Options.ReadOnly] the last three tools do not exist. Nothing deletes a file.
//
// # Paths
//
// A path is relative to the root or, with several roots, begins with the name of one
// ("docs/a.md"); absolute paths and file: URIs below a root are taken too. The name of
// a root is that of its folder; if two have the same, the later ones are "docs-2",
// "docs-3" and so on. Answers write paths so that they can be used again, with slashes
// on every system. Windows: both separators are taken; case does not matter in what
// leads to a root; reserved names (NUL, COM1), streams ("a.txt:x") and names that end
// in a dot or space are refused.
//
// # What a caller can and cannot do
//
// Every access goes through [os.Root], which the operating system resolves step by
// step: neither "..", nor a symbolic link, nor a folder that is swapped for a link at
// the wrong moment leads out of a root. Links that stay within are followed when a path
// names them; walks (search, tree) show links and do not follow them. Only regular
// files are read and written: pipes, sockets and devices are refused without waiting.
// A link is not written to; its target can be. Anything below a root can be read,
// hidden files too, except for what usually holds secrets: folders of version control
// (.git, .hg, .svn, .jj), .env files, credentials such as .netrc and .npmrc, .ssh and its
// like, and private keys, by their names or, in PEM, their beginning. These are not
// shown, and neither read nor written, by whatever path or link, unless [Options.Secrets]
// is set. A root may be one. A secret in a file with another name is served as any text.
//
// search and tree leave out node_modules, __pycache__ and .venv, and with
// [Options.Secrets] the folders of version control, unless "all" is set or the path leads
// into one. Other hidden files are not left out.
//
// Answers are bounded in entries, bytes, depth and time ([Options.Timeout]), and say
// when something is left out and how to get it.
//
// # Roots of the client
//
// A client of 2025-11-25 or older that declares roots is asked for them with each call,
// and the call reaches only what is below a root of the client and below one of the
// server: the roots of a client take away, they never add. A change of roots so applies
// from the next call on. A client that lists no roots, or none that fit, reaches nothing
// and is told so. Without [Options.Roots] the server's root is the working folder, and
// the same holds.
//
// In 2026-07-28, which deprecates roots, asking costs a round trip in results, so it is
// done only with [AlwaysClientRoots]. With [NoClientRoots] nobody is asked. Subscriptions
// belong to no call and so are checked against the roots of the server alone; reading
// what has changed is a call. A server without sessions ([mcp.HTTPConfig]) does not know
// what its older clients declare, and so asks none of them.
//
// # Resources
//
// Each file is a resource, file:///home/ada/a%20b.txt or file:///C:/a.txt, of at most
// 2 MiB; the tool read takes larger ones of text apart. What is on a Windows share has
// no resources. resources/list lists none, as there may be very many: the template
// file:///{+path} stands for all, and its path is completed, percent-encoded. Resources that somebody subscribes to are watched, also while they
// are replaced by rename or do not exist, and only as long as somebody is subscribed.
// What the system does not tell, of a file behind a link for instance, is found out
// within 5 seconds.
//
// # Guarantees
//
//   - write and edit put a new file in the place of the old one, with its mode, when it
//     is on the disk: a full disk, or a crash, leaves the old file whole. Hard links to
//     it, owners and extended attributes are not carried over.
//   - write, move and edit run one after the other. A file that another program changed
//     while it was edited is not written.
//   - The folders are opened with the first request and closed by Shutdown. A folder
//     that is removed and made again is found again.
package files

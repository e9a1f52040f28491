// Package files is a server for the files in some folders: tools to list, read, search, write, edit
// and move them, and a resource for each file, with subscriptions.
//
// From the command line, for the working folder or named folders:
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
//	roots        the folders, their names, and whether they are writable
//	list         the entries of a folder
//	tree         a folder and everything below it
//	search       files by name (glob), lines by content (regular expression), or both
//	info         size, mode, times, type of one file or folder
//	read         a file: text by lines, pictures as images, sounds as audio, the rest as a blob
//	read_file    another name of read
//	read_many    several files of text
//	write        creates or replaces a file
//	edit         replaces passages of a file and returns a diff; or only the diff
//	move         renames or moves; never overwrites
//	file:///{+path}  every file, as a resource
//	code_review  a prompt that asks for a review of code, given as text or as a path
//
// With [Options.ReadOnly] write, edit and move do not exist. No tool deletes a file.
//
// # Paths
//
// A path is relative to the root or, with several roots, begins with a root's name ("docs/a.md");
// absolute paths and file: URIs below a root work too. The name of a root is that of its folder; if
// two have the same, the later ones are "docs-2", "docs-3" and so on. Paths in answers can be used
// as arguments, and have slashes on every system. On Windows both separators work; case does not
// matter in the path of a root; reserved names (NUL, COM1), streams ("a.txt:x") and names that end
// in a dot or space are refused.
//
// # Access
//
// Every access goes through [os.Root], which the operating system resolves step by step: neither
// "..", nor a symbolic link, nor a folder that is swapped for a link during an access leads out of
// a root. Links within a root are followed when a path names them; walks (search, tree) show links
// and do not follow them. Only regular files are read and written: pipes, sockets and devices are
// refused without waiting. A link is not written to; its target can be. All files below a root can
// be read, dotfiles too, except those that usually hold secrets: folders of version control (.git,
// .hg, .svn, .jj), .env files, credentials such as .netrc and .npmrc, .ssh and similar folders, and
// private keys, by their names or, in PEM, their beginning. These are neither listed nor read nor
// written, by any path or link, unless [Options.Secrets] is set. A root itself may be one. A secret
// in a file with another name is served like any text.
//
// search and tree leave out node_modules, __pycache__ and .venv, and with [Options.Secrets] the
// folders of version control, unless "all" is set or the path leads into one. Other dotfiles are
// not left out.
//
// Answers are bounded in entries, bytes, depth and time ([Options.Timeout]), and say
// when something is left out and how to get it.
//
// # Roots of the client
//
// A client that speaks 2025-11-25 or older that declares roots is asked for them with each call,
// and the call reaches only what is below a root of the client and below one of the server: the
// roots of a client restrict access and never extend it. A change of roots applies from the next
// call on. A client that lists no roots, or none that match, reaches nothing and gets an error. All
// of this also holds without [Options.Roots], when the server's root is the working folder.
//
// In 2026-07-28, which deprecates roots, asking costs a round trip in results, so it is done only
// with [AlwaysClientRoots]. With [NoClientRoots] clients are never asked. Subscriptions do not
// belong to a call and so are checked only against the roots of the server; reading a changed file
// is a call. A server without sessions ([mcp.HTTPConfig]) does not know the capabilities of older
// clients, and does not ask them.
//
// # Resources
//
// Each file is a resource, file:///home/ada/a%20b.txt or file:///C:/a.txt, of at most 2 MiB; the
// tool read reads larger text files in parts. Files on a Windows share are not resources.
// resources/list does not list files, because there may be very many. The template file:///{+path}
// stands for all, and its path is completed, percent-encoded. Subscribed resources are watched,
// also while they are replaced by rename or do not exist, until the last subscription ends. A
// change that the system does not report, such as in a file behind a link, is found within 5
// seconds.
//
// # Guarantees
//
//   - write and edit put a new file in the place of the old one, with its mode, when it is on the
//     disk: a full disk, or a crash, leaves the old file whole. Hard links to it, owners and
//     extended attributes are not kept.
//   - write, move and edit run one after the other. A file that another program changed
//     while it was edited is not written.
//   - The folders are opened with the first request and closed by Shutdown. A folder that is
//     removed and created again is reopened.
package files

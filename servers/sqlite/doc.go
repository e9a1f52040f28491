// Package sqlite is an MCP server for one SQLite database. Its tools inspect, query and change the
// database. Another tool collects insights about the data in a memo, which clients read as a
// resource.
//
// From the command line, on a file or on a database in memory that lives as long as
// the server:
//
//	patchbay call sqlite/read_query query="SELECT sqlite_version()"
//	patchbay serve sqlite --db notes.db --http 127.0.0.1:7420
//	patchbay call read_query query="SELECT * FROM notes WHERE id = ?" params:=[1] -s http://127.0.0.1:7420/mcp
//
// From Go:
//
//	http.Handle("/mcp", sqlite.New(sqlite.Options{DB: "notes.db"}))
//
// # Features
//
//	read_query       one statement that only reads, with parameters and limits
//	write_query      one statement that writes, in a transaction of its own
//	create_table     one CREATE TABLE
//	list_tables      tables and views
//	describe_table   columns, indexes, foreign keys, SQL
//	append_insight   adds to memo://insights, and notifies its subscribers
//	memo://insights  the findings so far
//	mcp-demo         a prompt that demonstrates all of this on a topic
//
// # Access
//
// The engine enforces the rules, not a check of the query's text. read_query runs on connections
// that are read-only in two ways (mode=ro and query_only), also for a database in memory. On every
// connection an authorizer refuses, while a statement is compiled, everything that would reach
// another file or outlive the statement: ATTACH, DETACH, VACUUM INTO, load_extension, transactions
// and savepoints, temporary objects, pragmas except informative ones, and virtual tables of unknown
// modules. Defensive mode is on, the schema is not trusted, no database can be attached, and
// foreign keys are enforced. Several statements in one query are refused.
//
// A tool runs at most [Options.Timeout] and ends when its caller cancels. Other programs may use
// the file at the same time; a tool waits 5 seconds for a lock.
//
// # Values
//
// Cells are JSON: NULL is null, INTEGER and REAL are numbers, TEXT is a string, as it is stored. A
// value that JSON or its decoders would distort is an object with one member that names its kind:
// {"integer":"9007199254740993"} beyond 2^53-1, {"real":"Infinity"}, {"blob":"AAEC"} in base64,
// {"text_base64":"/w=="} for text that is not UTF-8.
//
// A row is a list of cells or, with [Options.Objects], an object with a member for each column. The
// text of a result of read_query is then the list of rows alone, [{"name":"Riga"}]; the structured
// content also has the columns and whether there are more rows. A repeated name of a column gets a
// number, as SQLite itself names the columns of a view: "name", "name:1".
//
// # Kept and not kept
//
// With [Options.DB] tables and rows are in the file, on the disk before the result of a tool is
// sent. Without it they are in memory and end with the server. The memo of insights is always in
// memory.
//
// # Guarantees
//
//   - A failed or cancelled write_query or create_table changes nothing.
//   - Results stop at a row limit, and at 1 MiB, and then say how to read the rest.
//   - The database is opened with the first request and closed by Shutdown.
package sqlite

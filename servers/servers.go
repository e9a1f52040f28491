package servers

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/internal/spelling"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/servers/conjugate"
	"github.com/patchbay-dev/patchbay/servers/everything"
	"github.com/patchbay-dev/patchbay/servers/fetch"
	"github.com/patchbay-dev/patchbay/servers/files"
	"github.com/patchbay-dev/patchbay/servers/shop"
	"github.com/patchbay-dev/patchbay/servers/sqlite"
)

// builtin is one server of the table.
type builtin struct {
	name, summary string

	// bind declares the server's flags and returns the function that makes the server
	// after they are parsed. The set then has the operands as its arguments.
	bind func(fs *flag.FlagSet) func(logger *slog.Logger) (*mcp.Server, error)

	// operands describes the arguments beside the flags, as "DIR...: their meaning".
	// Empty: none are allowed.
	operands string

	// unattended are the default arguments, for a server that nobody has configured.
	unattended []string
}

// builtins are in the order in which they are shown.
var builtins = []builtin{
	{name: "everything", summary: "every feature of the protocol, for trying clients", bind: func(*flag.FlagSet) func(*slog.Logger) (*mcp.Server, error) {
		return func(logger *slog.Logger) (*mcp.Server, error) {
			srv := everything.New()
			srv.Logger = logger
			return srv, nil
		}
	}},
	{name: "files", summary: "files below folders: read, search, write, edit, watch", bind: func(fs *flag.FlagSet) func(*slog.Logger) (*mcp.Server, error) {
		var o files.Options
		fs.BoolVar(&o.ReadOnly, "read-only", false, "leave out the tools that change files")
		fs.BoolVar(&o.Secrets, "secrets", false, "also serve files that usually hold secrets: .git, .env files, credentials, private keys")
		fs.TextVar(&o.ClientRoots, "client-roots", files.LegacyClientRoots, "`when` roots of clients narrow the folders: legacy, always or never")
		fs.DurationVar(&o.Timeout, "timeout", 30*time.Second, "`time` limit of a call")
		return func(logger *slog.Logger) (*mcp.Server, error) {
			o.Roots = fs.Args()
			if err := o.Check(); err != nil {
				return nil, err
			}
			o.Logger = logger
			return files.New(o), nil
		}
	}, operands: "DIR...: the folders; without any, the working folder", unattended: []string{"--read-only"}},
	{name: "shop", summary: "a small shop with state: orders, carts, stock, questions", bind: func(fs *flag.FlagSet) func(*slog.Logger) (*mcp.Server, error) {
		var o shop.Options
		fs.StringVar(&o.DB, "db", "", "database `file`, created and filled if it does not exist; default: a shop in memory that ends with the server")
		return func(logger *slog.Logger) (*mcp.Server, error) {
			if err := o.Check(); err != nil {
				return nil, err
			}
			o.Logger = logger
			return shop.New(o), nil
		}
	}},
	{name: "sqlite", summary: "a SQLite database: inspect, query and write, within limits", bind: func(fs *flag.FlagSet) func(*slog.Logger) (*mcp.Server, error) {
		var o sqlite.Options
		fs.StringVar(&o.DB, "db", "", "database `file`, created if it does not exist; default: a small library in memory that ends with the server; insights are always in memory")
		alias(fs, "db-path", "db", "file")
		fs.BoolVar(&o.Objects, "objects", false, `rows as objects, [{"name": "Riga"}], instead of lists`)
		fs.BoolVar(&o.Demo, "demo", false, "fill a database without tables with a small library; the default without --db, unless --demo=false")
		fs.DurationVar(&o.Timeout, "timeout", 30*time.Second, "`time` limit of a query")
		return func(logger *slog.Logger) (*mcp.Server, error) {
			// An empty database that ends with the server would be useless.
			chosen := false
			fs.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "demo" })
			o.Demo = o.Demo || o.DB == "" && !chosen
			if err := o.Check(); err != nil {
				return nil, err
			}
			o.Logger = logger
			return sqlite.New(o), nil
		}
	}},
	{name: "conjugate", summary: "English verbs: 31 verbs, 5 tenses, 3 persons", bind: func(*flag.FlagSet) func(*slog.Logger) (*mcp.Server, error) {
		return func(logger *slog.Logger) (*mcp.Server, error) {
			return conjugate.New(conjugate.Options{Logger: logger}), nil
		}
	}},
	{name: "fetch", summary: "pages of the web as Markdown, text or source", bind: func(fs *flag.FlagSet) func(*slog.Logger) (*mcp.Server, error) {
		var o fetch.Options
		fs.BoolVar(&o.AllowPrivate, "allow-private", false, "also fetch from this machine and private networks, but not from link-local addresses")
		fs.Func("allow-host", "`host`, or host:port, to fetch from at any address; repeatable", func(host string) error {
			if host == "" {
				return errEmpty
			}
			o.AllowHosts = append(o.AllowHosts, host)
			return nil
		})
		fs.Func("proxy", "`URL` of a proxy, which then decides about addresses; proxies of the environment are not used", func(raw string) (err error) {
			if raw == "" {
				return errEmpty
			}
			o.Proxy, err = url.Parse(raw)
			return err
		})
		fs.Int64Var(&o.MaxBytes, "max-bytes", 5<<20, "maximum `bytes` read of a page")
		redirects := fs.Int("max-redirects", 10, "maximum number (`n`) of redirects; 0: none")
		fs.DurationVar(&o.Timeout, "timeout", 30*time.Second, "`time` limit of a page, redirects included")
		fs.StringVar(&o.UserAgent, "user-agent", "", "`name` in the User-Agent header; default: Patchbay with a link to the project")
		return func(logger *slog.Logger) (*mcp.Server, error) {
			if o.MaxRedirects = *redirects; o.MaxRedirects <= 0 {
				o.MaxRedirects = -1
			}
			o.Logger = logger
			if err := o.Check(); err != nil {
				return nil, err
			}
			return fetch.New(o), nil
		}
	}},
	{name: "openapi", summary: "an HTTP API, by its OpenAPI document", bind: bindOpenAPI, operands: "FILE|URL: the document"},
}

// Names returns the names of the servers, in display order.
func Names() []string {
	names := make([]string, len(builtins))
	for i, b := range builtins {
		names[i] = b.name
	}
	return names
}

// Summary returns a server's purpose in one line. It is empty for an unknown name.
func Summary(name string) string {
	b, err := find(name)
	if err != nil {
		return ""
	}
	return b.summary
}

// Unattended returns a server's default arguments, which make it harmless.
// "patchbay up" uses them without a configuration.
func Unattended(name string) []string {
	b, err := find(name)
	if err != nil {
		return nil
	}
	return slices.Clone(b.unattended)
}

// Usage lists the flags of a server, a few lines of text for people that end with
// a newline. It is empty for an unknown name.
func Usage(name string) string {
	b, err := find(name)
	if err != nil {
		return ""
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %s\n", b.name, b.summary)
	if b.operands != "" {
		fmt.Fprintf(&text, "  %s\n", b.operands)
	}
	fs := flagSet(b)
	b.bind(fs)
	var names, abouts []string
	wide := 0
	fs.VisitAll(func(f *flag.Flag) {
		value, about := flag.UnquoteUsage(f)
		name := "--" + f.Name
		if value != "" {
			name += " " + strings.ToUpper(value)
		}
		switch f.DefValue {
		case "", "false", "0":
		default:
			about += " [" + f.DefValue + "]"
		}
		names, abouts = append(names, name), append(abouts, about)
		wide = max(wide, len(name))
	})
	for i := range names {
		fmt.Fprintf(&text, "  %-*s  %s\n", wide, names[i], abouts[i])
	}
	return text.String()
}

// HasFlag reports whether one of the servers of some names has a flag, which may begin with dashes.
func HasFlag(name string, of ...string) bool {
	return slices.ContainsFunc(of, func(server string) bool {
		b, err := find(server)
		if err != nil {
			return false
		}
		fs := flagSet(b)
		b.bind(fs)
		return fs.Lookup(strings.TrimLeft(name, "-")) != nil
	})
}

// New returns a server by its name and arguments, for instance "sqlite" and
// {"--db", "notes.db"}, or "files" and {"docs", "--read-only"}. Errors that the
// server cannot return to a client go to logger, which may be nil.
//
// The error is [flag.ErrHelp] if args ask for help ([Usage] has the text);
// otherwise it names the faulty name, flag or value. New neither starts nor opens
// anything.
func New(name string, args []string, logger *slog.Logger) (*mcp.Server, error) {
	b, err := find(name)
	if err != nil {
		return nil, err
	}
	fs := flagSet(b)
	open := b.bind(fs)
	if err := parse(fs, args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil, flag.ErrHelp
		}
		return nil, fmt.Errorf("server %q: %s", name, wording(fs, err.Error()))
	}
	if err := nonempty(fs); err != nil {
		return nil, fmt.Errorf("server %q: %w", name, err)
	}
	if err := onceEach(fs); err != nil {
		return nil, fmt.Errorf("server %q: %w", name, err)
	}
	if fs.NArg() > 0 && b.operands == "" {
		return nil, fmt.Errorf("server %q: unexpected argument %q; it takes flags only", name, fs.Arg(0))
	}
	srv, err := open(logger)
	if err != nil {
		return nil, fmt.Errorf("server %q: %w", name, err)
	}
	return srv, nil
}

// wording returns an error of package flag with the flags as people write them.
func wording(fs *flag.FlagSet, text string) string {
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: -"); ok {
		text = "unknown flag --" + name
		fs.VisitAll(func(f *flag.Flag) {
			if spelling.Distance(name, f.Name) < 3 {
				text += "; did you mean --" + f.Name + "?"
			}
		})
		return text
	}
	if name, ok := strings.CutPrefix(text, "flag needs an argument: -"); ok {
		return "--" + name + " needs a value"
	}
	if value, rest, ok := strings.Cut(strings.TrimPrefix(text, "invalid boolean value "), " for -"); ok {
		name, _, _ := strings.Cut(rest, ":")
		return "--" + name + " takes true or false, not " + value
	}
	return strings.TrimSuffix(strings.Replace(text, " for flag -", " for --", 1), ": parse error")
}

// parse parses flags in any position, up to "--". All other words become the
// arguments of the set.
func parse(fs *flag.FlagSet, args []string) error {
	var operands []string
	for {
		if err := fs.Parse(args); err != nil {
			return err
		}
		rest := fs.Args()
		if n := len(args) - len(rest); len(rest) == 0 || n > 0 && args[n-1] == "--" {
			return fs.Parse(append(append([]string{"--"}, operands...), rest...))
		}
		operands, args = append(operands, rest[0]), rest[1:]
	}
}

// aliased is the value of a flag that is another name of the flag of.
type aliased struct {
	flag.Value
	of string
}

// alias declares another name of a flag that takes a value.
func alias(fs *flag.FlagSet, name, of, value string) {
	fs.Var(aliased{fs.Lookup(of).Value, of}, name, fmt.Sprintf("another name of --%s `%s`", of, strings.ToUpper(value)))
}

// onceEach returns an error if a flag is set by both of its names.
func onceEach(fs *flag.FlagSet) (err error) {
	set := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { set[f.Name] = true })
	fs.Visit(func(f *flag.Flag) {
		if v, ok := f.Value.(aliased); ok && set[v.of] {
			err = fmt.Errorf("--%s and --%s are two names of one flag; give one of them", v.of, f.Name)
		}
	})
	return err
}

var errEmpty = errors.New("the value is empty")

// nonempty returns an error if the value of a flag is empty, which is usually a variable that is not
// set.
func nonempty(fs *flag.FlagSet) (err error) {
	fs.Visit(func(f *flag.Flag) {
		v := f.Value
		if a, ok := v.(aliased); ok {
			v = a.Value
		}
		if v, ok := v.(flag.Getter); ok && v.Get() == "" {
			err = fmt.Errorf("--%s needs a value", f.Name)
		}
	})
	return err
}

func find(name string) (builtin, error) {
	for _, b := range builtins {
		if b.name == name {
			return b, nil
		}
	}
	return builtin{}, fmt.Errorf("no built-in server %q; the built-in servers are %s", name, strings.Join(Names(), ", "))
}

// flagSet returns a flag set that leaves all printing to the caller.
func flagSet(b builtin) *flag.FlagSet {
	fs := flag.NewFlagSet(b.name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	return fs
}

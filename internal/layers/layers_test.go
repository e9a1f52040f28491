package layers

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/patchbay-dev/patchbay/"

// forbidden lists the imports that the packages below a folder must not have, and why. Test
// files are exempt.
var forbidden = []struct {
	folder  string   // "/." at the end: only that package, not those below it
	imports []string // prefixes of import paths; "./" stands for the module, "/." as in folder
	reason  string
}{
	{"internal/jsonx", []string{"./"}, "the codec is the ground floor"},
	{"jsonrpc", []string{"./mcp", "./schema", "./internal/engine", "./internal/revision", "./internal/transport"}, "messages know nothing of MCP"},
	{"internal/feature", []string{"./"}, "a table of strings"},
	{"internal/providers", []string{"./mcp", "./host", "./config", "./gateway", "./cmd"}, "a table for who reads a configuration and who asks a model"},
	{"internal/retryafter", []string{"./mcp", "./jsonrpc", "./internal/engine", "./internal/transport", "./internal/bridge"}, "a header and a member are read, whoever got them"},
	{"internal/note", []string{"./"}, "a word between middlewares that do not know each other"},
	{"internal/stray", []string{"./"}, "a word between the program that starts a command and the connection to it"},
	{"internal/outcome", []string{"./auth", "./gateway", "./config", "./launch", "./host", "./policy", "./limit", "./servers", "./cmd", "./internal/engine", "./internal/bridge", "./internal/transport"}, "how a request ended, whoever wants to know"},
	{"internal/node", []string{"./auth", "./cluster", "./gateway", "./config", "./host", "./cmd", "./mcp", "./jsonrpc", "./internal/engine", "./internal/bridge", "./internal/transport"}, "a word between a cluster and the servers behind it"},
	{"internal/taskend", []string{"./auth", "./gateway", "./policy", "./audit", "./metrics", "./telemetry", "./config", "./host", "./cmd", "./internal/bridge", "./internal/engine", "./internal/transport"}, "the ends of tasks in answers, whoever counts them"},
	{"internal/step", []string{"./auth", "./gateway", "./policy", "./audit", "./metrics", "./telemetry", "./config", "./host", "./cmd"}, "what a gateway and a policy ask a handler, whoever made it"},
	{"internal/nonblock", []string{"./"}, "system calls, whatever is read and written"},
	{"internal/parallel", []string{"./"}, "one function over the standard library"},
	{"host/mention", []string{"./host", "./gateway", "./cmd"}, "a language: who uses it says what there is to mention"},
	{"schema", []string{"./mcp", "./jsonrpc", "./internal/engine", "./internal/revision", "./internal/transport"}, "schemas know nothing of MCP's wire"},
	{"internal/revision", []string{"./mcp", "./jsonrpc", "./internal/engine", "./internal/transport"}, "tables convert JSON and nothing else"},
	{"internal/engine", []string{"./mcp", "./schema", "./internal/transport", "./internal/bridge"}, "the inside speaks raw: no Go types of features, no wires"},
	{"internal/bridge", []string{"./mcp", "./schema", "./internal/transport/duplex", "./internal/transport/stdio", "./internal/transport/sse", "./internal/transport/websocket"}, "what is between two revisions speaks raw, whatever the wire"},
	{"internal/transport", []string{"./mcp", "./schema"}, "the inside speaks raw: no Go types of features"},
	{"mcp", []string{"./auth", "./config", "./host", "./gateway", "./inspector", "./servers", "./cmd", "./mcptest", "./store/sqlite"}, "the SDK imports no product package"},
	{"cluster/.", []string{"./mcp", "./gateway", "./config", "./cmd", "./cluster/nats"}, "nodes share bytes, whatever they serve, and a single one pays nothing for NATS"},
	{"cluster/nats", []string{"./mcp", "./gateway", "./config", "./cmd"}, "nodes share bytes, whatever they serve"},
	{"store/.", []string{"./"}, "interfaces, which the SDK and every store import"},
	{"store/sqlite", []string{"./mcp", "./jsonrpc", "./internal/engine", "./internal/transport", "./gateway", "./cmd"}, "a store knows nothing of servers"},
	{"mcp/level", []string{"./"}, "numbers and their names"},
	{"trace", []string{"./"}, "a recorder sees bytes, and everything may be recorded"},
	{"auth", []string{"./mcp", "./jsonrpc", "./schema", "./internal/engine", "./internal/revision", "./internal/transport", "./gateway", "./config", "./servers", "./cmd"}, "logging in is about HTTP, whatever is said over it"},
	{"auth/.", []string{"./auth/login", "./auth/issuer", "./auth/vault"}, "a server knows its callers without a browser, a keyring or a token of its own"},
	{"auth/issuer", []string{"./auth/login", "./auth/vault", "./store"}, "an authorization server sees browsers and hosts over HTTP, and is not a client of MCP"},
	{"auth/login", []string{"./auth/.", "./auth/issuer", "./auth/vault"}, "a client logs in without the verifiers of a server; where it keeps tokens is up to its program"},
	{"config", []string{"./mcp", "./internal/engine", "./internal/transport", "./gateway"}, "a configuration is data"},
	{"config/deploy", []string{"./auth", "./policy", "./limit", "./launch", "./host", "./cmd", "./config/."}, "a deployment is read, and the program that uses it knows what its values mean"},
	{"host/memory", []string{"./mcp", "./config", "./gateway", "./cmd"}, "what is kept is messages, whoever they went to"},
	{"host/model", []string{"./mcp", "./gateway", "./config", "./cmd"}, "a model is asked by whoever has messages, MCP or not"},
	{"host/provider", []string{"./mcp", "./gateway", "./config", "./auth", "./cmd"}, "a provider knows models, not who asks them"},
	{"host/modeltest", []string{"./mcp", "./gateway", "./config", "./cmd"}, "a provider in tests speaks its own wire alone"},
	{"host/approval", []string{"./host", "./config", "./gateway", "./cmd"}, "an approval is of a tool, whoever asks"},
	{"audit", []string{"./cluster", "./host", "./config", "./gateway", "./launch", "./policy", "./limit", "./servers", "./cmd", "./internal/bridge", "./internal/transport"}, "a log of calls for any server and client, and it knows of no program"},
	{"cmd", []string{"./internal/wirecheck", "./mcptest"}, "the library behind wirecheck costs every start 5 ms"},
	{"skills", []string{"./gateway", "./config", "./servers", "./cmd", "./internal/engine", "./internal/transport", "./internal/revision"}, "an extension is made of the public SDK alone"},
	{"apps", []string{"./gateway", "./config", "./servers", "./cmd", "./internal/engine", "./internal/transport", "./internal/revision"}, "an extension is made of the public SDK alone"},
	{"servers", []string{"./gateway", "./config", "./cmd", "./internal/engine", "./internal/transport"}, "a bundled server is made of the public SDK alone"},
	{"examples", []string{"./internal"}, "an example could live in a module of its own"},
	{"policy", []string{"./gateway", "./config", "./servers", "./cmd", "./internal/engine", "./internal/transport", "./internal/revision"}, "a policy is middleware made of the public SDK, and knows of no program"},
	{"limit", []string{"./auth", "./gateway", "./config", "./cmd", "./servers", "./internal"}, "a middleware is made of the public SDK alone"},
	{"host/model", []string{"./mcp", "./gateway", "./config", "./servers", "./cmd", "./auth"}, "a language model knows nothing of servers"},
	{"host", []string{"./policy", "./limit", "./auth", "./config", "./cmd", "./servers", "./internal/engine", "./internal/transport", "./internal/revision"}, "the agent loop is made of the public SDK and the gateway, and knows of no program"},
	{"metrics", []string{"./auth", "./gateway", "./config", "./launch", "./host", "./policy", "./servers", "./cmd", "./internal/engine", "./internal/bridge", "./internal/transport", "./internal/revision"}, "counters are for any server and gateway, and know of no program"},
	{"telemetry/push", []string{"./auth", "./gateway", "./config", "./launch", "./host", "./policy", "./servers", "./cmd"}, "counters are sent, whoever counts"},
	{"middleware", []string{"./auth", "./gateway", "./config", "./launch", "./host", "./policy", "./limit", "./servers", "./cmd", "./internal/bridge", "./internal/transport"}, "a middleware is for any server and client, and knows of no program"},
	{"telemetry/.", []string{"./auth", "./gateway", "./config", "./launch", "./host", "./policy", "./limit", "./servers", "./cmd", "./internal/bridge", "./internal/transport", "./telemetry/otlp"}, "spans are made with the API, for any server and client"},
	{"telemetry/otlp", []string{"./telemetry/.", "./mcp", "./jsonrpc", "./gateway", "./config", "./servers", "./cmd", "./internal/engine"}, "spans and metrics are sent, whatever made them"},
	{"internal/listen", []string{"./config", "./gateway", "./host", "./servers", "./cmd", "./internal/engine", "./internal/health"}, "it serves a server, whichever it is, and knows of no program"},
	{"internal/health", []string{"./config", "./auth", "./host", "./servers", "./cmd", "./internal/engine", "./internal/listen"}, "a report is made by the gateway's program; here it is served and found"},
	{"launch", []string{"./servers", "./cmd", "./host", "./policy", "./limit", "./mcptest", "./internal/listen", "./internal/health", "./internal/engine", "./internal/transport", "./internal/revision"}, "it opens servers for any program, which brings its built-in ones along"},
	{"cmd/patchbay/internal/doctor", []string{"./host/.", "./host/provider", "./gateway", "./servers", "./policy", "./limit", "./auth", "./internal/engine", "./internal/transport"}, "it goes the way to a server that launch goes, and no other"},
	{"cmd/patchbay/internal/accesslog", []string{"./config", "./launch", "./gateway", "./host"}, "requests are logged, whoever serves them"},
	{"cmd/patchbay/internal/chain", []string{"./gateway/.", "./host", "./launch", "./servers", "./internal/engine", "./internal/transport"}, "it makes middlewares, whatever they are put around"},
	{"cmd/patchbay/internal/arguments", []string{"./mcp", "./config", "./launch", "./gateway", "./host"}, "words and schemas, whoever calls"},
	{"cmd/patchbay/internal/terminal", []string{"./config", "./launch", "./gateway", "./host", "./auth"}, "it asks and says, whatever it is about"},
	{"cmd/patchbay/internal/answers", []string{"./config", "./launch", "./gateway", "./host", "./cmd/patchbay/internal/terminal"}, "it answers without a person"},
	{"cmd/patchbay/internal/events", []string{"./config", "./launch", "./gateway"}, "a conversation is told, whichever servers it has"},
	{"cmd/patchbay/internal/timeline", []string{"./mcp", "./config", "./launch", "./gateway", "./host"}, "frames are shown as they were recorded"},
	{"cmd/patchbay/internal/auditlog", []string{"./mcp", "./config", "./launch", "./gateway", "./host"}, "a log is read, whoever wrote it"},
	{"cmd/patchbay/internal/top", []string{"./mcp", "./config", "./launch", "./gateway", "./host"}, "reports are shown, whoever made them"},
	{"cmd/patchbay/internal/token", []string{"./mcp", "./config", "./launch", "./gateway", "./host"}, "a token is read, whoever sent it"},
	{"cmd/patchbay/internal/person", []string{"./config", "./launch", "./gateway"}, "a person is asked, whichever servers the host has"},
	{"cmd/patchbay/internal/board", []string{"./config", "./launch", "./host"}, "news are told, whoever has the servers"},
	{"cmd/patchbay/internal/block", []string{"./mcp", "./config", "./launch", "./host"}, "blocks are shown as they came, those too that mcp does not know"},
	{"cmd/patchbay/internal/inputs", []string{"./mcp", "./launch", "./gateway", "./host"}, "an input is answered, whoever starts the server"},
	{"cmd/patchbay/internal/project", []string{"./mcp", "./config", "./launch"}, "folders are looked at, whatever for"},
	{"cmd/patchbay/internal/form", []string{"./config", "./launch", "./gateway", "./host", "./cmd/patchbay/internal/terminal", "./cmd/patchbay/internal/chat"}, "both ways to show a form import the form"},
	{"cmd/patchbay/internal/entry", []string{"./mcp", "./launch", "./gateway", "./host"}, "an entry is shown as it stands in the file"},
	{"cmd/patchbay/internal/importer", []string{"./mcp", "./launch", "./gateway", "./host"}, "servers are copied from file to file, and none is started"},
	{"cmd/patchbay/internal/advice", []string{"./mcp", "./config", "./launch", "./gateway", "./host"}, "an error is worded, whichever verb has it"},
	{"cmd/patchbay/internal/agree", []string{"./mcp", "./gateway", "./host", "./servers"}, "a file is shown and agreed to, whatever uses it"},
	{"cmd/patchbay/internal/protect", []string{"./config", "./launch", "./gateway", "./host", "./servers"}, "callers are admitted, whatever they call"},
	{"cmd/patchbay/internal/steer", []string{"./host", "./servers", "./policy", "./limit", "./internal/engine"}, "it acts on a gateway, whichever program has made it"},
	{"cmd/patchbay/internal/explain", []string{"./host", "./servers", "./internal/engine", "./internal/transport", "./mcptest"}, "a call is explained by the parts of up, around servers that do nothing"},
	{"cmd/patchbay/internal/install", []string{"./mcp", "./launch", "./gateway", "./host"}, "files of hosts are changed, whatever the gateway serves"},
	{"cmd/patchbay/internal/models", []string{"./gateway", "./policy", "./servers"}, "models come from files and the environment"},
	{"cmd/patchbay/internal/verdict", []string{"./config", "./launch", "./gateway", "./host"}, "a policy decides, whoever asks"},
	{"cmd/patchbay/internal/scaffold/.", []string{"./mcp", "./config", "./launch", "./gateway", "./host"}, "files are written, whatever is in them"},
	{"cmd/patchbay/internal/scaffold/server", []string{"./internal", "./cmd"}, "a new project lives in a module of its own"},
	{"cmd/patchbay/internal/scaffold/client", []string{"./internal", "./cmd"}, "a new project lives in a module of its own"},
	{"cmd/patchbay/internal/screen", []string{"./config", "./launch", "./gateway", "./host", "./schema"}, "text and terminals, whatever the text is about"},
	{"internal/secrets", []string{"./mcp", "./gateway", "./launch", "./host", "./cmd"}, "what is a secret is said by its name, whoever asks"},
	{"internal/process", []string{"./mcp", "./gateway", "./launch", "./host", "./cmd"}, "it judges a command line and an exit code, and starts nothing"},
	{"internal/guard", []string{"./"}, "the guard runs before other packages are initialized"},
	{"internal/bounds", []string{"./"}, "processes are measured, whatever they serve"},
	{"internal/follow", []string{"./"}, "files are followed, whatever is in them"},
	{"internal/resultcache", []string{"./"}, "results are kept, whichever they are"},
	{"internal/netfault", []string{"./auth", "./config", "./gateway", "./launch", "./internal/transport"}, "it words errors, whoever got them"},
	{"internal/tlsfiles", []string{"./mcp", "./auth", "./config", "./internal/listen", "./internal/transport"}, "files are read, whoever listens or connects"},
	{"breaker", []string{"./auth", "./gateway", "./config", "./launch", "./host", "./policy", "./limit", "./metrics", "./servers", "./cmd", "./internal/engine", "./internal/bridge", "./internal/transport"}, "a breaker is for any handler, and knows of no program"},
	{"gateway/spread", []string{"./host", "./policy", "./limit", "./metrics", "./auth", "./config", "./launch", "./cmd", "./servers", "./internal/bridge", "./internal/transport"}, "a replica is any Upstream, wherever it comes from"},
	{"gateway/view", []string{"./gateway/.", "./host", "./limit", "./metrics", "./auth", "./config", "./cmd", "./servers", "./internal/engine", "./internal/bridge", "./internal/transport"}, "a view is middleware, whatever it is put around"},
	{"gateway/.", []string{"./host", "./policy", "./limit", "./metrics", "./auth", "./config", "./cmd", "./servers", "./internal/engine", "./internal/transport"}, "the gateway is made of the public SDK alone"},
}

// sdk lists the dependencies, outside of the standard library and the module, of the packages
// that every user imports.
var sdk = []string{
	"github.com/coder/websocket", // has no dependencies of its own
	"github.com/go-json-experiment/json",
	"github.com/yosida95/uritemplate/v3",
	"golang.org/x/sys", // job objects of Windows
}

func TestLayers(t *testing.T) {
	for file, imports := range sources(t) {
		for _, rule := range forbidden {
			if !under(filepath.Dir(file), rule.folder) {
				continue
			}
			for _, path := range imports {
				if path == module+"internal/buffer" || path == module+"internal/text" {
					continue // below everything
				}
				for _, bad := range rule.imports {
					bad = strings.Replace(bad, "./", module, 1)
					if under(path, bad) {
						if under(path, module+rule.folder) {
							continue // a package of the folder itself
						}
						t.Errorf("%s imports %s: %s", file, path, rule.reason)
					}
				}
			}
		}
		for _, folder := range []string{"mcp/", "jsonrpc/", "schema/", "internal/engine/", "internal/bridge/", "internal/revision/", "internal/transport/", "internal/jsonx/"} {
			if !strings.HasPrefix(file, folder) {
				continue
			}
			for _, path := range imports {
				first, _, _ := strings.Cut(path, "/")
				if strings.Contains(first, ".") && !strings.HasPrefix(path, module) &&
					!slices.ContainsFunc(sdk, func(ok string) bool { return path == ok || strings.HasPrefix(path, ok+"/") }) {
					t.Errorf("%s imports %s: users of the SDK pay for each dependency", file, path)
				}
			}
		}
	}
}

// OpenTelemetry is linked by packages below telemetry and by the program, and its SDK by
// telemetry/otlp, telemetry/push, the program and one example alone: a program that imports mcp or telemetry does not have it.
func TestOpenTelemetryIsLinkedOnRequest(t *testing.T) {
	api, sdk := 0, 0
	for file, imports := range sources(t) {
		dir := filepath.ToSlash(filepath.Dir(file))
		sends := under(dir, "telemetry/otlp") || under(dir, "telemetry/push") || under(dir, "cmd/patchbay") || dir == "examples/observed"
		for _, path := range imports {
			switch {
			case under(path, "go.opentelemetry.io/otel/sdk"), under(path, module+"telemetry/otlp"):
				if sdk++; !sends {
					t.Errorf("%s imports %s: only the program that sends spans has the SDK", file, path)
				}
			case under(path, "go.opentelemetry.io"), under(path, module+"telemetry"):
				if api++; !sends && !under(dir, "telemetry") {
					t.Errorf("%s imports %s: only users of package telemetry have OpenTelemetry", file, path)
				}
			}
		}
	}
	if api == 0 || sdk == 0 {
		t.Errorf("%d imports of the API and %d of the SDK; the walk is broken", api, sdk)
	}
}

// under reports whether a package is in a folder, or is the package that a folder with "/."
// names.
func under(path, folder string) bool {
	if alone, ok := strings.CutSuffix(folder, "/."); ok {
		return path == alone
	}
	folder = strings.TrimSuffix(folder, "/")
	return path == folder || strings.HasPrefix(path, folder+"/")
}

func TestEveryPackageHasAComment(t *testing.T) {
	commented := map[string]bool{}
	for file := range sources(t) {
		dir := filepath.Dir(file)
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join("../..", file), nil, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			t.Fatal(err)
		}
		commented[dir] = commented[dir] || f.Doc != nil
	}
	for dir, ok := range commented {
		if !ok {
			t.Errorf("package %s has no package comment", dir)
		}
	}
}

// sources returns the imports of every Go file of the module except tests, by path from its
// root.
func sources(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, path := range goFiles(t) {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join("../..", path), nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		out[path] = []string{}
		for _, imp := range f.Imports {
			out[path] = append(out[path], strings.Trim(imp.Path.Value, `"`))
		}
	}
	return out
}

// goFiles returns the paths from the root of the module of all its Go files, with tests.
func goFiles(t *testing.T) (paths []string) {
	t.Helper()
	root := os.DirFS("../..")
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			name := d.Name()
			_, nested := fs.Stat(root, path+"/go.mod")
			if path != "." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules" || nested == nil) {
				return fs.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(path, ".go") {
			paths = append(paths, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) < 100 {
		t.Fatalf("found only %d files; the walk is broken", len(paths))
	}
	return paths
}

package servers

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/internal/tlsfiles"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/openapi"
)

// bindOpenAPI declares the flags of the server of an OpenAPI document.
func bindOpenAPI(fs *flag.FlagSet) func(*slog.Logger) (*mcp.Server, error) {
	o := openapi.Options{Header: http.Header{}, Credentials: map[string]string{}, Names: map[string]string{}}
	list := func(name, usage string, into *[]string) {
		fs.Func(name, usage, func(s string) error {
			if s == "" {
				return errEmpty
			}
			*into = append(*into, s)
			return nil
		})
	}
	// table declares a flag NAME=VALUE.
	table := func(name, usage string, set func(name, value string) error) {
		fs.Func(name, usage, func(s string) error {
			name, value, found := strings.Cut(s, "=")
			if !found || name == "" || value == "" {
				return errors.New("write NAME=VALUE")
			}
			return set(name, value)
		})
	}
	fs.StringVar(&o.Base, "base", "", "`URL` of the API, instead of the server in the document; it may be at any address")
	list("include", "operations to serve: a `pattern` of names, of \"METHOD /path\", or of tags as in tag:pets; * is any text; repeatable", &o.Include)
	list("exclude", "operations to leave out, as a `pattern`; repeatable", &o.Exclude)
	table("rename", "another name for a tool, as `NAME=NEW`; repeatable", func(name, value string) error {
		o.Names[name] = value
		return nil
	})
	table("credential-env", "environment variable with the credential for a security scheme of the document, as `SCHEME=VARIABLE`; repeatable", func(name, value string) error {
		text, ok := os.LookupEnv(value)
		if !ok || text == "" {
			return fmt.Errorf("the credential for %q is missing: the environment variable %s is not set", name, value)
		}
		o.Credentials[name] = text
		return nil
	})
	table("credential", "the credential itself, as `SCHEME=VALUE`; for mcp.json, because other programs see a command line", func(name, value string) error {
		o.Credentials[name] = value
		return nil
	})
	files := map[string]string{}
	table("credential-file", "file with the credential, as `SCHEME=FILE`; read for each request, so that it may change; repeatable", func(name, value string) error {
		files[name] = value
		if _, err := credentialIn(value); err != nil {
			return fmt.Errorf("the file for %q cannot be used: %w", name, err)
		}
		return nil
	})
	table("request-header", "header of each request, as `NAME=VALUE`; repeatable", func(name, value string) error {
		o.Header.Set(name, value)
		return nil
	})
	var ca, cert, key string
	fs.StringVar(&ca, "server-ca", "", "also trust server certificates signed by this CA (PEM `file`), of the document and of the API")
	fs.StringVar(&cert, "client-cert", "", "client certificate for the API (PEM `file`)")
	fs.StringVar(&key, "client-key", "", "key of the certificate, a `file`; default: in the same file")
	fs.BoolVar(&o.Resources, "resources", false, "also serve GET operations as resources")
	fs.BoolVar(&o.Private, "allow-private", false, "also read the document, and send requests to servers that it names, on this machine and private networks")
	fs.Int64Var(&o.MaxBytes, "max-bytes", 256<<10, "maximum `bytes` of an answer")
	fs.DurationVar(&o.Timeout, "timeout", time.Minute, "`time` limit of a call")
	return func(logger *slog.Logger) (*mcp.Server, error) {
		if fs.NArg() != 1 {
			return nil, errors.New("name one document: a file or a URL")
		}
		from := fs.Arg(0)
		secure, err := tlsfiles.Client(ca, "", "")
		if err == nil {
			o.TLS, err = tlsfiles.Client(ca, cert, key)
		}
		if err != nil {
			return nil, err
		}
		data, source, err := openapi.Load(context.Background(), from, o.Private, secure)
		if err != nil {
			return nil, err
		}
		doc, err := openapi.Parse(data)
		if place := (*openapi.Fault)(nil); errors.As(err, &place) {
			return nil, fmt.Errorf("%s:%w", from, err)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", from, err)
		}
		o.Source, o.Logger = source, logger
		for name := range files {
			if !slices.Contains(doc.Schemes(), name) {
				return nil, fmt.Errorf("%s: the document has no security scheme %q that can be used; it has %q", from, name, doc.Schemes())
			}
		}
		o.Credential = func(_ context.Context, scheme string) (string, error) {
			if files[scheme] == "" {
				return "", nil
			}
			value, err := credentialIn(files[scheme])
			if err != nil && logger != nil {
				logger.Warn("credential not read", "scheme", scheme, "err", err)
				err = errors.New("its file cannot be read; the log of the server says why")
			}
			return value, err
		}
		for _, f := range doc.Unmapped {
			if logger != nil {
				logger.Info("not mapped", "at", fmt.Sprintf("%s:%d:%d", from, f.Line, f.Column), "place", f.Place, "why", f.Text)
			}
		}
		srv, err := openapi.New(doc, o)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", from, err)
		}
		return srv, nil
	}
}

// credentialIn returns the credential in a file, without the line break at its end.
func credentialIn(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, 64<<10+1))
	value := strings.TrimRight(string(content), "\r\n")
	switch {
	case err != nil:
		return "", err
	case len(content) > 64<<10:
		return "", fmt.Errorf("%s has more than 64 KiB, which no credential has", file)
	case value == "":
		return "", fmt.Errorf("%s is empty", file)
	}
	return value, nil
}

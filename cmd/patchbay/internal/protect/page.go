package protect

import "github.com/patchbay-dev/patchbay/cmd/patchbay/internal/advice"

// Page has the flags of the page for people.
type Page struct {
	On     bool `name:"page" help:"Serve the page to other machines, by --auth and TLS."`
	NoPage bool `name:"no-page" help:"Serve no page for people."`
}

// CheckPage refuses flags that do not fit together. The argument stdio says that there is no listener.
func (p *Page) CheckPage(f *Flags, stdio bool) error {
	switch {
	case p.On && p.NoPage:
		return advice.Usagef("--page and --no-page exclude each other")
	case p.On && stdio:
		return advice.Usagef("--page needs HTTP: it is a page for browsers").Hint("--http 127.0.0.1:7420")
	case p.On && (!f.Knows() || f.TLSCert == ""):
		return advice.Usagef("--page needs --auth and --tls-cert, because other machines reach the page").Hint("patchbay help auth")
	}
	return nil
}

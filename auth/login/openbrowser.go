package login

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/patchbay-dev/patchbay/auth/internal/oauth"
	opener "github.com/patchbay-dev/patchbay/internal/browser"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// ErrNoBrowser says that this machine cannot open a page, which has to be shown as a link.
var ErrNoBrowser = errors.New("login: no browser is available")

// OpenBrowser opens a page in the user's browser, and does not wait for the user. It opens https
// pages, and http on loopback, without a shell. The error is [ErrNoBrowser] where no program can
// open pages, such as in a session without a screen. It fits [NewLoopback].
//
// It leaves a goroutine behind for as long as the program that opens pages runs, which may be the
// browser itself.
func OpenBrowser(ctx context.Context, page string) error {
	if err := checkPage(page); err != nil {
		return err
	}
	err := opener.Open(ctx, page)
	if errors.Is(err, opener.ErrNone) {
		return ErrNoBrowser
	}
	return err
}

// checkPage reports whether the address of a page can be shown to a user and given to a program: it
// has no characters but those of addresses (RFC 3986, 2), so that none means anything to a terminal
// or a command line.
func checkPage(page string) error {
	u, err := url.Parse(page)
	if err != nil || u.Scheme != "https" && (u.Scheme != "http" || !oauth.IsLoopback(u.Hostname())) || u.Host == "" || u.User != nil {
		return fmt.Errorf("%q is not the address of a page", text.Short(page))
	}
	for _, c := range []byte(page) {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~:/?#[]@!$&'()*+,;=%", c) >= 0) {
			return fmt.Errorf("%q is not the address of a page: it has the character %q", text.Short(page), c)
		}
	}
	return nil
}

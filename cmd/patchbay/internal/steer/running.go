package steer

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/advice"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/internal/listen"
)

// Up is the name of -s for the running gateway of this user.
const Up = "up"

// Running returns the gateways of this user, the oldest first. Programs that serve one server, such as
// a bridge, are not among them.
func Running(ctx context.Context) ([]health.Found, error) {
	ups, err := health.Gateways(ctx)
	if err != nil {
		return nil, fmt.Errorf("find a patchbay up: %w", err)
	}
	answer := slices.DeleteFunc(slices.Clone(ups), func(u health.Found) bool { return u.Report == nil || !u.Steers })
	if len(answer) == 0 {
		return nil, Silent(ups, 0)
	}
	return answer, nil
}

// Silent returns an error if a gateway of this user, or the one with a process id, runs and does not answer.
func Silent(ups []health.Found, pid int) error {
	for i := range ups {
		u := &ups[i]
		if u.Silent() && (pid == 0 || u.Process() == pid) {
			return &advice.Error{
				Code: advice.ExitUnreachable, Err: fmt.Errorf("the patchbay up with pid %d is running, but has not answered within 3 seconds", u.Process()),
				Next: "try again; if it never answers, look at its output, and end that process",
			}
		}
	}
	return nil
}

// Only returns the one gateway of ups, or that with a process id; 0: any. None is the error if ups is empty.
// The flags --pid and -s of an error's hint are for the verb that runs.
func Only(ups []health.Found, pid int, none func() error) (*health.Found, error) {
	fits := slices.DeleteFunc(slices.Clone(ups), func(u health.Found) bool { return pid != 0 && u.PID != pid })
	switch {
	case len(ups) == 0:
		return nil, none()
	case len(fits) == 0:
		return nil, &advice.Error{Code: advice.ExitUsage, Err: fmt.Errorf("no gateway of yours has the process id %d", pid), Detail: lines(ups), Next: fmt.Sprintf("--pid %d", ups[0].PID)}
	case len(fits) > 1:
		return nil, &advice.Error{Code: advice.ExitUsage, Err: fmt.Errorf("%d gateways of yours run; which one? --pid N or -s URL selects one", len(fits)), Detail: lines(fits), Next: fmt.Sprintf("--pid %d", fits[0].PID)}
	}
	return &fits[0], nil
}

// Taken returns an error that says which gateway has taken an address; nil: none that can be found. It reports whether the
// gateway is one of this user.
func Taken(ctx context.Context, address string) (who error, seen bool) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		port = address
	}
	if ups, err := health.Gateways(ctx); err == nil {
		for _, u := range ups {
			if u.Report != nil && u.URL != "" && strings.HasSuffix(strings.TrimSuffix(u.URL, listen.Path), ":"+port) {
				return fmt.Errorf("another patchbay already serves %s: pid %d, %s", u.URL, u.PID, u.From), true
			}
		}
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // no proxy
	if _, err := health.Ask(ctx, client, "http://"+net.JoinHostPort("127.0.0.1", port)); err == nil {
		return fmt.Errorf("port %s is used by a patchbay up that patchbay status cannot see: of another user, in a container, or with another XDG_RUNTIME_DIR", port), false
	}
	return nil, false
}

// Endpoint returns the URL of the MCP endpoint of a gateway: of everything that it serves or, if its views
// leave nothing there, of the first view.
func Endpoint(u *health.Found) (string, error) {
	if u.URL == "" {
		return "", advice.Usagef("the patchbay up with pid %d serves stdio (%s), so it has no endpoint", u.PID, u.From).Hint("patchbay up without --stdio has one")
	}
	at, err := url.Parse(u.URL)
	if err != nil {
		return "", fmt.Errorf("the patchbay up with pid %d: %w", u.PID, err)
	}
	if len(u.Views) > 0 && !slices.ContainsFunc(u.Views, func(v health.View) bool { return v.Path == at.Path }) {
		if path := u.Views[0].Path; strings.HasPrefix(path, "/") {
			return at.Scheme + "://" + at.Host + path, nil
		}
	}
	return u.URL, nil
}

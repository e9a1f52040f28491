package steer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/advice"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/internal/netfault"
	"github.com/patchbay-dev/patchbay/launch"
)

// Where are the flags that select a gateway.
type Where struct {
	Admin string `placeholder:"URL" help:"Use the gateway with this listen.admin."`
	PID   int    `flag:"-"` // of --pid, which other verbs have too
}

// URL returns the URL of the API at --admin; empty: there is none.
func (w *Where) URL() string {
	u, err := url.Parse(w.Admin)
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host + Path
}

// Client sends requests to one gateway.
type Client struct {
	base   string // URL without Path
	http   *http.Client
	header http.Header
	named  string // the gateway, for people
}

const (
	maxAnswer = 8 << 20
	maxList   = 80 << 20 // of a list of tools
	maxFrame  = 64 << 10 // of a line of a log
	waitTime  = settleTime + 10*time.Second
)

// Dial finds the gateway of the flags: that at a URL, or the only one of this user that has the
// server; empty: any. The header is for a URL; none is the error if no gateway runs.
func (w *Where) Dial(ctx context.Context, server string, header http.Header, transport http.RoundTripper, none func() error) (*Client, error) {
	if w.Admin != "" {
		u, err := url.Parse(w.Admin)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return nil, advice.Usagef("--admin %q is not an http or https URL", w.Admin).Hint("--admin http://127.0.0.1:9443")
		}
		if w.PID != 0 {
			return nil, advice.Usagef("--admin and --pid exclude each other")
		}
		return &Client{u.Scheme + "://" + u.Host, &http.Client{Transport: transport}, header, w.Admin}, nil
	}
	ups, err := health.Gateways(ctx)
	if err != nil {
		return nil, err
	}
	all := slices.DeleteFunc(slices.Clone(ups), func(u health.Found) bool { return u.Report == nil || !u.Steers })
	if err := Silent(ups, w.PID); err != nil && (len(all) == 0 || w.PID != 0) {
		return nil, err
	}
	if len(all) == 0 {
		return nil, none()
	}
	has := func(u health.Found) bool {
		return server == "" || slices.ContainsFunc(u.Servers, func(s health.Server) bool { return s.Name == server })
	}
	fits := slices.DeleteFunc(slices.Clone(all), func(u health.Found) bool { return w.PID != 0 && u.PID != w.PID || w.PID == 0 && !has(u) })
	switch {
	case len(fits) == 1:
		return Over(fits[0]), nil
	case len(fits) > 1 && server == "":
		return nil, &advice.Error{Code: advice.ExitUsage, Err: fmt.Errorf("%d gateways of yours run; which one?", len(fits)), Detail: lines(fits), Next: fmt.Sprintf("--pid %d", fits[0].PID)}
	case len(fits) > 1:
		return nil, &advice.Error{Code: advice.ExitUsage, Err: fmt.Errorf("%d gateways have a server %q; which one?", len(fits), server), Detail: lines(fits), Next: fmt.Sprintf("--pid %d", fits[0].PID)}
	case w.PID != 0:
		return nil, &advice.Error{Code: advice.ExitUsage, Err: fmt.Errorf("no gateway of yours has the process id %d", w.PID), Detail: lines(all), Next: fmt.Sprintf("--pid %d", all[0].PID)}
	case Silent(ups, 0) != nil: // it may have the server
		return nil, Silent(ups, 0)
	case len(all) == 1:
		return Over(all[0]), nil // it names its servers
	}
	var names []string
	for _, u := range all {
		for _, s := range u.Servers {
			names = append(names, s.Name)
		}
	}
	return nil, &advice.Error{Code: advice.ExitUsage, Err: fmt.Errorf("no gateway has a server %q%s", server, screen.DidYouMean(server, names)), Detail: lines(all), Next: "patchbay status shows their servers"}
}

// lines describes gateways.
func lines(list []health.Found) string {
	var out []string
	for _, u := range list {
		out = append(out, fmt.Sprintf("--pid %d: %s, %s", u.PID, u.Where(), u.From))
	}
	return strings.Join(out, "\n")
}

// Over returns the client of a running gateway.
func Over(u health.Found) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", u.Path)
	}
	return &Client{"http://localhost", &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}, nil, fmt.Sprintf("pid %d", u.PID)}
}

// Named names the gateway for people.
func (c *Client) Named() string { return c.named }

// request sends a request, and returns an error for any answer but 200.
func (c *Client) request(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+Path+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for k, v := range c.header {
		req.Header[k] = v
	}
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, &advice.Error{Code: advice.ExitUnreachable, Err: fmt.Errorf("%s%w", netfault.Words(err), netfault.Quiet(err)), Next: "patchbay status shows the gateways on this machine"}
	}
	if res.StatusCode == http.StatusOK {
		return res, nil
	}
	defer res.Body.Close()
	raw, _ := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	var p problem
	if json.Unmarshal(raw, &p) != nil || p.Detail == "" {
		p.Detail = fmt.Sprintf("%s answered HTTP %d %s", c.named, res.StatusCode, http.StatusText(res.StatusCode))
	}
	f := &advice.Error{Code: advice.ExitLocal, Err: errors.New(screen.Clip(p.Detail))}
	switch res.StatusCode {
	case http.StatusUnauthorized:
		f.Code, f.Err, f.Next = advice.ExitUnauthorized, fmt.Errorf("%s requires authorization: HTTP 401 Unauthorized", c.named), "--header 'Authorization: Bearer KEY'"
		if strings.Contains(res.Header.Get("WWW-Authenticate"), "resource_metadata=") {
			f.Next = "patchbay login " + screen.Shell([]string{c.base + Path}) + ", or --header 'Authorization: Bearer KEY'"
		}
		var refusal struct {
			Description string `json:"error_description"`
		}
		if json.Unmarshal(raw, &refusal) == nil && refusal.Description != "" {
			f.Err = fmt.Errorf("%w: %s", f.Err, screen.OneLine(screen.Clip(refusal.Description)))
		}
	case http.StatusForbidden:
		f.Code = advice.ExitUnauthorized
	case http.StatusNotFound:
		f.Code = advice.ExitUsage
		if p.Title == "" {
			f.Err, f.Next = fmt.Errorf("%s has no administration: HTTP 404", c.named), "listen.admin of gateway.yaml names its address"
		}
	}
	return nil, f
}

// Act does an action on a server, or with a name on one of its replicas. A negative drain is the default of
// the gateway.
func (c *Client) Act(ctx context.Context, action, server, replica string, drain time.Duration) (*Outcome, []byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, waitTime, fmt.Errorf("no answer in %v", waitTime))
	defer cancel()
	asks := map[string]string{}
	if replica != "" {
		asks["replica"] = replica
	}
	if drain >= 0 {
		asks["drain"] = drain.String()
	}
	body, err := json.Marshal(asks)
	if err != nil {
		return nil, nil, err
	}
	res, err := c.request(ctx, http.MethodPost, "/servers/"+url.PathEscape(server)+"/"+action, body)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, nil, err
	}
	o := new(Outcome)
	if err := json.Unmarshal(raw, o); err != nil || o.Text == "" {
		return nil, nil, fmt.Errorf("%s does not answer as a gateway does", c.named)
	}
	return o, bytes.TrimSpace(raw), nil
}

// errEnded is the error of a log that ends because its gateway does.
var errEnded = &advice.Error{Code: advice.ExitUnreachable, Err: errors.New("the gateway has ended")}

// Logs calls show with each of the last n lines of a server, and with follow with those after them until
// ctx ends. The argument raw is the line in JSON.
func (c *Client) Logs(ctx context.Context, server string, n int, follow bool, show func(line launch.Line, raw []byte) error) error {
	path := "/servers/" + url.PathEscape(server) + "/logs?follow=" + strconv.FormatBool(follow) + "&lines=" + strconv.Itoa(n)
	res, err := c.request(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if !follow {
		var all struct{ Lines []json.RawMessage }
		if err := json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(&all); err != nil {
			return err
		}
		for _, raw := range all.Lines {
			if err := shown(raw, show); err != nil {
				return err
			}
		}
		return nil
	}
	in := json.NewDecoder(res.Body)
	for {
		var raw json.RawMessage
		err := in.Decode(&raw)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return errEnded
		case len(raw) > maxFrame:
			return fmt.Errorf("%s sent a line of %d bytes", c.named, len(raw))
		}
		if err := shown(raw, show); err != nil {
			return err
		}
	}
}

func shown(raw json.RawMessage, show func(launch.Line, []byte) error) error {
	var line launch.Line
	if err := json.Unmarshal(raw, &line); err != nil {
		return err
	}
	return show(line, raw)
}

// toolsTime bounds the wait for the tools of a server, which the gateway has.
const toolsTime = 10 * time.Second

// Tools returns the tools of a server by its own names, each as in tools/list; nil: the gateway does not
// know them.
func (c *Client) Tools(ctx context.Context, server string) ([]json.RawMessage, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, toolsTime, fmt.Errorf("no answer in %v", toolsTime))
	defer cancel()
	res, err := c.request(ctx, http.MethodGet, "/servers/"+url.PathEscape(server)+"/tools", nil)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	var all struct{ Tools []json.RawMessage }
	if err := json.NewDecoder(io.LimitReader(res.Body, maxList)).Decode(&all); err != nil {
		return nil, fmt.Errorf("%s does not list the tools of %s: %w", c.named, server, err)
	}
	return all.Tools, nil
}

// Words returns a line of a log for people: its time, and what the server has written or, behind
// two dashes, what has happened to it.
func Words(l launch.Line) string {
	mark := " "
	if l.Event {
		mark = " -- "
	}
	return l.Time.Local().Format(time.TimeOnly) + mark + screen.OneLine(l.Text)
}

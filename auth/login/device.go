package login

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/auth/internal/oauth"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// Device is the [Grant] of a program whose user has a browser somewhere else: the user types
// a short code on a page there, and agrees. The authorization server must offer it.
//
// Specification: RFC 8628.
type Device struct {
	// Show tells the user what to do, and returns at once. The values come from the authorization
	// server; they are checked to be URLs and one word.
	Show func(ctx context.Context, code DeviceCode) error
}

// DeviceCode is what a user needs for a login by [Device].
type DeviceCode struct {
	Page    string    // where to go: https, or http on loopback
	Code    string    // what to type there
	Direct  string    // a page that knows the code already, for a QR code; empty: there is none
	Expires time.Time // when the code expires
}

const (
	defaultPoll = 5 * time.Second // RFC 8628, 3.2, and 3.5 adds as much when it is too fast
	maxPoll     = time.Minute
)

func (d *Device) check() error {
	if d.Show == nil {
		return errors.New("Device: Show is not set")
	}
	return nil
}

func (d *Device) get(ctx context.Context, t *Transport, p *place, want []string) (*token, error) {
	if p.device == nil {
		return nil, errors.New("it does not offer login with a device code (device_authorization_endpoint)")
	}
	id, err := t.identify(ctx, p, clientMetadata{Grants: p.grantsToRegister(grantDevice), Responses: []string{}})
	if err != nil {
		return nil, err
	}
	form := url.Values{"resource": {p.resource}}
	if want = p.lasting(want); len(want) > 0 {
		form.Set("scope", strings.Join(want, " "))
	}
	answer, err := t.ask(ctx, t.fetch.Fetcher, p.device, p, id, form)
	if err != nil {
		return nil, fmt.Errorf("device authorization endpoint %q: %w", text.Short(p.device.String()), err)
	}
	device, shown, interval, err := t.readDevice(answer)
	if err != nil {
		return nil, fmt.Errorf("device authorization endpoint %q: %w", text.Short(p.device.String()), err)
	}
	if err := d.Show(ctx, shown); err != nil {
		return nil, fmt.Errorf("show the code: %w", err)
	}
	ctx, cancel := context.WithDeadlineCause(ctx, shown.Expires, errors.New("the user did not type the code in time; log in again"))
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(interval):
		}
		k, err := t.request(ctx, p, id, url.Values{"grant_type": {grantDevice}, "device_code": {device}}, nil)
		var refused *RefusedError
		var network net.Error
		switch {
		case err == nil:
			return k, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.As(err, &network) && network.Timeout():
			interval = min(2*interval, maxPoll) // 3.5: a server that does not answer is polled less often
		case !errors.As(err, &refused):
			return nil, err
		case refused.Code == "authorization_pending":
		case refused.Code == "slow_down":
			interval = min(interval+defaultPoll, maxPoll)
		default:
			return nil, fmt.Errorf("token endpoint %q: %w", text.Short(p.token.String()), err)
		}
	}
}

// readDevice reads the answer of a device authorization endpoint (RFC 8628, 3.2).
func (t *Transport) readDevice(answer []byte) (device string, shown DeviceCode, interval time.Duration, err error) {
	var r struct {
		Device   string          `json:"device_code"`
		User     string          `json:"user_code"`
		Page     string          `json:"verification_uri"`
		Direct   string          `json:"verification_uri_complete"`
		Expires  json.RawMessage `json:"expires_in"`
		Interval json.RawMessage `json:"interval"`
	}
	if jsonx.Unmarshal(answer, &r) != nil || r.Device == "" { // its text may hold the code
		return "", shown, 0, errors.New("the answer has no device code")
	}
	if len(r.User) > 64 || !oauth.IsHeaderToken(r.User) {
		return "", shown, 0, fmt.Errorf("%q is not a code that a user can type", text.Short(r.User))
	}
	page, err := oauth.CheckURL(r.Page, t.server)
	if err != nil {
		return "", shown, 0, fmt.Errorf("verification_uri: %w", err)
	}
	shown = DeviceCode{Page: page.String(), Code: r.User, Expires: time.Now().Add(loginTimeout)}
	if direct, err := oauth.CheckURL(r.Direct, t.server); err == nil && oauth.Origin(direct) == oauth.Origin(page) {
		shown.Direct = direct.String()
	}
	if s := seconds(r.Expires); s > 0 && s < loginTimeout.Seconds() {
		shown.Expires = time.Now().Add(time.Duration(s * float64(time.Second)))
	}
	interval = defaultPoll
	if s := seconds(r.Interval); s > 0 {
		interval = min(max(time.Duration(s*float64(time.Second)), time.Second), maxPoll)
	}
	return r.Device, shown, interval, nil
}

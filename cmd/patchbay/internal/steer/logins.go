package steer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/patchbay-dev/patchbay/auth/issuer"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/advice"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
)

// People are the people who log in at a gateway, as an issuer.Server.
type People interface {
	Logins() ([]issuer.Login, error)
	EndLogins(person string) (int, error)
}

// Login is a login of a person with a host.
type Login struct {
	Subject string    `json:"subject"`
	Name    string    `json:"name,omitempty"`
	Host    string    `json:"host,omitempty"`
	Since   time.Time `json:"since"`
	Ends    time.Time `json:"ends"`
}

// Logins are the logins at a gateway, the newest first, at most 1000, and their number.
type Logins struct {
	List  []Login `json:"logins"`
	Total int     `json:"total"`
}

// Ended says what has ended the logins of a person.
type Ended struct {
	Person string `json:"person"`
	Ended  int    `json:"ended"` // logins
	Text   string `json:"text"`  // all of it, for people
}

// people returns the people of the gateway.
func (g *Gateway) people() (People, error) {
	if g.People == nil {
		return nil, fail(http.StatusNotFound, "nobody logs in at this gateway; login of gateway.yaml lets people do so")
	}
	return g.People, nil
}

func (g *Gateway) logins(w http.ResponseWriter, _ *http.Request, _ *asked) error {
	p, err := g.people()
	if err != nil {
		return err
	}
	all, err := p.Logins()
	if err != nil {
		return err
	}
	out := Logins{List: []Login{}, Total: len(all)}
	for i := len(all) - 1; i >= 0 && len(out.List) < maxLines; i-- {
		out.List = append(out.List, Login(all[i]))
	}
	write(w, http.StatusOK, out)
	return nil
}

// endLogins reads the body that names a person, and ends the logins of the person.
func (g *Gateway) endLogins(w http.ResponseWriter, r *http.Request, c *asked) error {
	p, err := g.people()
	if err != nil {
		return err
	}
	raw, err := readBody(w, r)
	if err != nil {
		return err
	}
	var body struct {
		Person string `json:"person"`
	}
	if err := decode(raw, &body, "person"); err != nil || body.Person == "" {
		return fail(http.StatusBadRequest, `the body is not an object with the member person, such as {"person": "alice@example.com"}`)
	}
	n, err := p.EndLogins(body.Person)
	if err != nil {
		return err
	}
	e := &Ended{Person: body.Person, Ended: n}
	if e.Text = screen.OneLine(body.Person) + ": " + screen.Quantity(n, "login") + " ended"; n == 0 {
		e.Text = screen.OneLine(body.Person) + " has no login here; patchbay logins list shows who has"
	}
	g.LoggedOut(c.by, e)
	write(w, http.StatusOK, e)
	return nil
}

// ask sends a request and reads its answer.
func (c *Client) ask(ctx context.Context, method, path string, body []byte, into any) (raw []byte, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, waitTime, fmt.Errorf("no answer in %v", waitTime))
	defer cancel()
	res, err := c.request(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if raw, err = io.ReadAll(io.LimitReader(res.Body, maxAnswer)); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return nil, fmt.Errorf("%s does not answer as a gateway does", c.named)
	}
	return bytes.TrimSpace(raw), nil
}

// ShowLogins prints the logins at the gateway, as JSON or as a table.
func (c *Client) ShowLogins(ctx context.Context, asJSON bool, line func(string), grid func(*screen.Grid)) error {
	var all Logins
	raw, err := c.ask(ctx, http.MethodGet, "/logins", nil, &all)
	switch {
	case err != nil:
		return err
	case asJSON:
		line(string(raw))
		return nil
	case all.Total == 0:
		line("nobody is logged in (" + c.named + ")")
		return nil
	}
	g, now := new(screen.Grid), time.Now()
	g.Add("SUBJECT", "NAME", "HOST", "SINCE", "ENDS IN")
	for _, l := range all.List {
		g.Add(l.Subject, l.Name, l.Host, screen.Age(l.Since, now), screen.Age(now, l.Ends))
	}
	grid(g)
	if more := all.Total - len(all.List); more > 0 {
		line(fmt.Sprintf("and %d more", more))
	}
	return nil
}

// EndLogins ends the logins of a person, and prints what was done. A person without a login is an error.
func (c *Client) EndLogins(ctx context.Context, person string, asJSON bool, line func(string)) error {
	body, err := json.Marshal(map[string]string{"person": person})
	if err != nil {
		return err
	}
	e := new(Ended)
	raw, err := c.ask(ctx, http.MethodPost, "/logins/end", body, e)
	if err != nil {
		return err
	}
	if e.Ended == 0 && !asJSON {
		return &advice.Error{Code: advice.ExitUsage, Err: fmt.Errorf("%s has no login at the gateway (%s)", screen.OneLine(person), c.named), Next: "patchbay logins list"}
	}
	if asJSON {
		line(string(raw))
	} else {
		line(screen.OneLine(e.Text) + " (" + c.named + ")")
	}
	return nil
}

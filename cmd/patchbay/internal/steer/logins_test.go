package steer

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/auth/issuer"
)

// crowd are people who have logged in.
type crowd struct {
	list []issuer.Login
	err  error
}

func (c *crowd) Logins() ([]issuer.Login, error) { return c.list, c.err }

func (c *crowd) EndLogins(person string) (n int, err error) {
	for _, l := range c.list {
		if l.Subject == person {
			n++
		}
	}
	return n, c.err
}

// The logins are listed, the newest first, and those of one person end; wrong requests get the reason.
func TestLogins(t *testing.T) {
	g, said := newGateway(t)
	if w := as(g, "GET", Path+"/logins", "", nil); w.Code != 404 || !strings.Contains(w.Body.String(), "nobody logs in at this gateway") {
		t.Errorf("without people: HTTP %d %s", w.Code, w.Body)
	}
	people := new(crowd)
	for i := range maxLines + 1 {
		people.list = append(people.list, issuer.Login{Subject: fmt.Sprint("p", i%100), Since: time.Unix(int64(i), 0), Ends: time.Unix(1e10, 0)})
	}
	people.list[maxLines].Host, people.list[maxLines].Name = "Desk", "last@example.com"
	g.People = people
	if w := as(g, "GET", Path+"/logins", "", nil); w.Code != 200 || !strings.HasPrefix(w.Body.String(), `{"logins":[{"subject":"p0","name":"last@example.com","host":"Desk",`) ||
		!strings.Contains(w.Body.String(), `"total":1001`) || strings.Count(w.Body.String(), "subject") != maxLines {
		t.Errorf("the list: HTTP %d %.300s", w.Code, w.Body)
	}
	for _, tt := range []struct {
		body string
		code int
		want string
	}{
		{`{"person":"p1"}`, 200, `"ended":10,"text":"p1: 10 logins ended"`},
		{`{"person":"nobody"}`, 200, `"ended":0,"text":"nobody has no login here`},
		{`{}`, 400, `with the member person`},
		{`{"person":"p1","all":true}`, 400, `with the member person`},
		{`{"person":"p1","person":"p2"}`, 400, `with the member person`},
		{`{"person":"p1"} {"person":"p2"}`, 400, `with the member person`},
		{`{"person":"` + strings.Repeat("x", maxBody) + `"}`, 413, `more than 4096 bytes`},
		{``, 400, `with the member person`},
	} {
		if w := as(g, "POST", Path+"/logins/end", tt.body, nil); w.Code != tt.code || !strings.Contains(w.Body.String(), tt.want) {
			t.Errorf("%.40s: HTTP %d %s, want %d %s", tt.body, w.Code, w.Body, tt.code, tt.want)
		}
	}
	if got := said(); !strings.Contains(got, " ended p1: 10 logins ended; ") {
		t.Errorf("reported: %s", got)
	}
	if w := as(g, "POST", Path+"/logins/end", `{"person":"p1"}`, nil, "dev"); w.Code != 403 {
		t.Errorf("without the role: HTTP %d", w.Code)
	}
	people.err = errors.New("disk full")
	if w := as(g, "POST", Path+"/logins/end", `{"person":"p1"}`, nil); w.Code/100 == 2 || !strings.Contains(w.Body.String(), "disk full") {
		t.Errorf("an error: HTTP %d %s", w.Code, w.Body)
	}
}

package inspector

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

// routeWire adds the paths of the wire screen.
func (p *Page) routeWire() {
	if p.Frames == nil {
		return
	}
	p.mux.Handle("GET /ui/rows", p.adminOnly(answered(p.rows)))
	p.mux.Handle("GET /ui/words", p.adminOnly(answered(func(*http.Request) (any, error) { return filterWords, nil })))
	p.mux.Handle("GET /ui/row/{n}", p.adminOnly(answered(p.details)))
	p.mux.Handle("GET /ui/compare", p.adminOnly(answered(p.compared)))
	p.mux.Handle("GET /ui/trace", p.adminOnly(http.HandlerFunc(p.download)))
	p.routeRecordings()
}

// errAdmins refuses people who may not see the traffic of others.
var errAdmins = fail(http.StatusForbidden, "only administrators see what is on the wire")

// adminOnly lets only people through who may see all traffic.
func (p *Page) adminOnly(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !personOf(r.Context()).Admin {
			refuse(w, errAdmins)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// rows answers with rows: the newest, or with before or after those next to a row.
func (p *Page) rows(r *http.Request) (any, error) { return p.rowsOf(r.Context(), r.URL.Query()) }

func (p *Page) rowsOf(ctx context.Context, query url.Values) (list rowPage, err error) {
	q, err := parseFilter(query.Get("q"))
	if err != nil {
		return list, fail(http.StatusBadRequest, "%v", err)
	}
	before, err1 := count(query, "before", 0)
	after, err2 := count(query, "after", -1)
	limit, err3 := count(query, "limit", 200)
	for _, err := range []error{err1, err2, err3} {
		if err != nil {
			return list, err
		}
	}
	f, err := p.framesFor(ctx, query)
	if err != nil {
		return list, err
	}
	return f.page(q, before, after, min(max(limit, 1), maxRows), func() bool { return ctx.Err() != nil }), nil
}

// count returns a parameter that is a number.
func count(query url.Values, name string, none int) (int, error) {
	s := query.Get(name)
	if s == "" {
		return none, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return 0, fail(http.StatusBadRequest, "%s is %s, and has to be a number from 0", name, strconv.Quote(shown(fmt.Sprint(s))))
	}
	return n, nil
}

package auditlog

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// Usage is the sums of the calls of a log. A call is a line call.end or denied; an answer with a
// question (outcome "question") does not count, because the caller sends the call again.
type Usage struct {
	Log     string    `json:"log"`
	Files   int       `json:"files"`
	Lines   int       `json:"lines"`         // that were selected
	From    time.Time `json:"from,omitzero"` // of these lines
	To      time.Time `json:"to,omitzero"`
	Bad     int       `json:"unreadable,omitzero"`
	Dropped int64     `json:"dropped,omitzero"` // lines that the writer of the log lost
	Open    int       `json:"open,omitzero"`    // calls with a begin and without an end
	By      []string  `json:"by"`
	Rows    []Row     `json:"rows"` // most calls first
	Total   Row       `json:"total"`
}

// Row is the sums of some calls.
type Row struct {
	Team      string  `json:"team,omitempty"`
	Tool      string  `json:"tool,omitempty"` // of other calls, their method; "(unknown)": of all tools that do not exist
	Server    string  `json:"server,omitempty"`
	Principal string  `json:"principal,omitempty"`
	Client    string  `json:"client,omitempty"`
	Calls     int     `json:"calls"`
	Errors    int     `json:"errors"`
	Denied    int     `json:"denied"`
	Unsent    int     `json:"unsent,omitempty"` // calls that failed in the gateway, so no errors of a server
	P50       float64 `json:"p50Ms"`            // of the calls that were made, at most 2 % off
	P95       float64 `json:"p95Ms"`
	Bytes     int64   `json:"bytes"` // of results

	made      int         // calls that were made
	durations map[int]int // their number by the logarithm of their duration
}

// Columns are the words of --by.
var Columns = []string{"team", "tool", "server", "principal", "client"}

// cell returns the field of a column.
func (r *Row) cell(column string) *string {
	switch column {
	case "team":
		return &r.Team
	case "tool":
		return &r.Tool
	case "server":
		return &r.Server
	case "principal":
		return &r.Principal
	}
	return &r.Client
}

// Usage adds up the selected calls, by columns. The error is a [BadFlag] if there is no such column.
func (l *Log) Usage(by []string) (*Usage, error) {
	by = slices.Clone(by)
	for i, column := range by {
		if column == "who" { // the name of the flag that selects
			column, by[i] = "principal", "principal"
		}
		if !slices.Contains(Columns, column) {
			return nil, BadFlag{fmt.Errorf("--by cannot be %q; use %s%s", column, strings.Join(Columns, ", "), screen.DidYouMean(column, Columns))}
		}
		if slices.Contains(by[:i], column) {
			return nil, BadFlag{fmt.Errorf("--by has %s twice", column)}
		}
	}
	u := &Usage{Log: l.Path, Files: len(l.Files), By: by, Rows: []Row{}}
	rows := map[string]*Row{}
	open := map[string]bool{}
	for e, err := range l.All() {
		if err != nil {
			return nil, err
		}
		id := callID(e)
		switch e.Kind {
		case audit.CallBegin:
			open[id] = true
			continue
		case audit.Node:
			u.Dropped += dropped(e)
			continue
		case audit.CallEnd, audit.Denied:
			delete(open, id)
		default:
			continue
		}
		if e.Outcome == "question" {
			continue
		}
		row := rowOf(e, by)
		key := strings.Join([]string{row.Team, row.Tool, row.Server, row.Principal, row.Client}, "\x00")
		if rows[key] == nil {
			rows[key] = &row
		}
		rows[key].add(e)
		u.Total.add(e)
	}
	u.Lines, u.From, u.To, u.Bad, u.Open = l.Selected, l.From, l.To, l.Bad, len(open)
	for _, r := range rows {
		r.P50, r.P95 = r.quantile(0.5), r.quantile(0.95)
		u.Rows = append(u.Rows, *r)
	}
	u.Total.P50, u.Total.P95 = u.Total.quantile(0.5), u.Total.quantile(0.95)
	slices.SortFunc(u.Rows, func(a, b Row) int {
		order := cmp.Compare(b.Calls, a.Calls)
		for _, column := range by {
			order = cmp.Or(order, strings.Compare(*a.cell(column), *b.cell(column)))
		}
		return order
	})
	return u, nil
}

// rowOf returns an empty row for a call.
func rowOf(e *audit.Entry, by []string) (r Row) {
	for _, column := range by {
		cell := r.cell(column)
		switch {
		case column == "team":
			*cell = e.Team
		case column == "tool" && e.Method == "" && e.Fault == "unknown": // callers choose these names
			*cell = "(unknown)"
		case column == "tool":
			*cell = cmp.Or(e.Method, e.Tool)
		case column == "server" && e.Server != nil:
			*cell = e.Server.Name
		case column == "principal" && e.Principal != nil:
			*cell = e.Principal.ID
		case column == "client" && e.Client != nil:
			*cell = e.Client.Name
		}
	}
	return r
}

// dropped returns the number of lines that a line of kind node reports as lost.
func dropped(e *audit.Entry) (n int64) {
	if e.Event == audit.EventDropped {
		lines, _ := jsonx.Lookup(e.Detail, "lines")
		n, _ = strconv.ParseInt(string(lines), 10, 64)
	}
	return n
}

// step is the factor between two durations that count as different.
var step = math.Log(1.04)

func (r *Row) add(e *audit.Entry) {
	r.Calls += 1 + e.More // which have no lines of their own
	switch {
	case e.Kind == audit.Denied:
		r.Denied += 1 + e.More
		return
	case e.Outcome == "denied":
		r.Denied++
	case e.Outcome == "error" && slices.Contains([]string{"audit", "unsent", "unknown"}, e.Fault):
		r.Unsent += 1 + e.More
		return
	case failed(e):
		r.Errors += 1 + e.More
	}
	r.made++
	r.Bytes += int64(e.Bytes)
	if r.durations == nil {
		r.durations = map[int]int{}
	}
	r.durations[int(math.Round(math.Log(max(e.Millis, 0.001))/step))]++
}

// quantile returns the duration in milliseconds that a part of the calls did not exceed.
func (r *Row) quantile(part float64) float64 {
	n := r.made
	for _, d := range slices.Sorted(maps.Keys(r.durations)) {
		if n -= r.durations[d]; float64(n) <= float64(r.made)*(1-part) {
			ms, _ := strconv.ParseFloat(strconv.FormatFloat(math.Exp(float64(d)*step), 'g', 3, 64), 64)
			return ms
		}
	}
	return 0
}

// Grid returns the table for people.
func (u *Usage) Grid() *screen.Grid {
	g := &screen.Grid{}
	var head []string
	for _, column := range u.By {
		head = append(head, strings.ToUpper(column))
	}
	g.Right = make([]bool, len(u.By), len(u.By)+5)
	g.Right = append(g.Right, true, true, true, true, true)
	g.Add(append(head, "CALLS", "ERRORS", "DENIED", "P50", "P95", "BYTES")...)
	add := func(cells []string, r Row) {
		p50, p95 := took(r.P50), took(r.P95)
		if r.made == 0 {
			p50, p95 = "-", "-"
		}
		g.Add(append(cells, strconv.Itoa(r.Calls), strconv.Itoa(r.Errors), strconv.Itoa(r.Denied), p50, p95, screen.Bytes(int(r.Bytes)))...)
	}
	for _, r := range u.Rows {
		var cells []string
		for _, column := range u.By {
			cells = append(cells, cmp.Or(*r.cell(column), "-"))
		}
		add(cells, r)
	}
	if len(u.Rows) > 1 {
		cells := make([]string, len(u.By))
		cells[0] = "total"
		add(cells, u.Total)
	}
	return g
}

// Source says what the sums are made of.
func (u *Usage) Source() string {
	text := fmt.Sprintf("computed from %d lines of %s", u.Lines, u.Log)
	if u.Files > 1 {
		text += fmt.Sprintf(" (%d files)", u.Files)
	}
	if !u.From.IsZero() {
		text += fmt.Sprintf(", %s to %s", u.From.Local().Format(stamp), u.To.Local().Format(stamp))
	}
	if u.Open > 0 {
		text += fmt.Sprintf("; %s without an end", screen.Quantity(u.Open, "call"))
	}
	if u.Total.Unsent > 0 {
		text += fmt.Sprintf("; %s failed in the gateway and were not sent", screen.Quantity(u.Total.Unsent, "call"))
	}
	if u.Dropped > 0 {
		text += fmt.Sprintf("; %s lost, because the log could not be written", screen.Quantity(int(u.Dropped), "line"))
	}
	return text
}

package shop_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/servers/shop"
	"github.com/patchbay-dev/patchbay/trace"
)

// eras runs a test on the newest revision of each way to ask: by requests, where the
// handler waits, and by results, where it runs again.
func eras(t *testing.T, body func(t *testing.T, rev mcp.Revision)) {
	for _, rev := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		t.Run(string(rev), func(t *testing.T) { body(t, rev) })
	}
}

func booking(date string) args {
	return args{"customer": "cus-1002", "destination": "dolomites", "date": date, "people": 2}
}

// A user who goes on naming days that cannot be is asked three times; each question says
// what is wrong and which days are free.
func TestTripAsksForAnotherDate(t *testing.T) {
	eras(t, func(t *testing.T, rev mcp.Revision) {
		answers := []string{day(50), day(-3), day(900)}
		i := 0
		p := &person{
			date:   func(string) (string, error) { i++; return answers[i-1], nil },
			member: func() (bool, error) { return false, nil },
		}
		s := mcptest.Connect(t, newServer(t, shop.Options{}), p.client(), rev)
		call[trip](t, s, "book-trip", booking(day(50)))
		p.asked = nil
		refused(t, s, "book-trip", booking(day(50)), day(900)+" is too far ahead", "free are "+day(1)+", "+day(2)+", "+day(3))
		for n, want := range []string{"Via ferrata in the Dolomites is taken on " + day(50) + "; free are " + day(51), "is taken on", day(-3) + " is not in the future"} {
			if len(p.asked) != 3 || !strings.Contains(p.asked[n], want) {
				t.Errorf("question %d of %q, want %q in it", n+1, p.asked, want)
			}
		}

		// The third answer is right, and the call goes on to the membership.
		i, answers, p.asked = 0, []string{day(50), day(50), day(52)}, nil
		got := call[trip](t, s, "book-trip", booking(day(50)))
		if got.Trip == nil || got.Trip.ID != "trp-1005" || got.Trip.Date != day(52) || got.Trip.Price != "270.00 EUR" || got.Member || len(p.asked) != 4 {
			t.Errorf("book-trip = %+v after %q, want trp-1005 on %s for 270.00 EUR, no member", got, p.asked, day(52))
		}
	})
}

// A user who names no other date gets no trip; one who wants no membership, or cannot be
// asked about it, keeps the trip (ELIC-26-026, -027).
func TestTripAnswers(t *testing.T) {
	broken := errors.New("the dialog broke")
	eras(t, func(t *testing.T, rev mcp.Revision) {
		for _, tt := range []struct {
			name      string
			date      error // on being asked for another
			wants     bool
			member    error
			booked    bool
			memberNow bool
			note      string
		}{
			{name: "declined", date: mcp.ErrDeclined, note: "free are " + day(61)},
			{name: "dismissed", date: mcp.ErrDismissed, note: "did not name another date"},
			{name: "member", wants: true, booked: true, memberNow: true, note: "Booked"},
			{name: "no member", booked: true, note: "Booked"},
			{name: "member declined", member: mcp.ErrDeclined, booked: true, note: "Booked"},
			{name: "member dismissed", member: mcp.ErrDismissed, booked: true, note: "Booked"},
		} {
			t.Run(tt.name, func(t *testing.T) {
				p := &person{
					date:   func(string) (string, error) { return day(61), tt.date },
					member: func() (bool, error) { return tt.wants, tt.member },
				}
				s := mcptest.Connect(t, newServer(t, shop.Options{}), p.client(), rev)
				// Greta is a member already and is not asked.
				call[trip](t, s, "book-trip", args{"customer": "cus-1007", "destination": "dolomites", "date": day(60)})
				if len(p.asked) != 0 {
					t.Errorf("a member was asked %q", p.asked)
				}
				got := call[trip](t, s, "book-trip", booking(day(60)))
				if (got.Trip != nil) != tt.booked || got.Member != tt.memberNow || !strings.Contains(got.Note, tt.note) {
					t.Errorf("book-trip = %+v", got)
				}
			})
		}
	})
	t.Run("client fails", func(t *testing.T) {
		p := &person{date: func(string) (string, error) { return "", broken }, member: func() (bool, error) { return false, broken }}
		s := mcptest.Connect(t, newServer(t, shop.Options{}), p.client(), mcp.V2025_11_25)
		got := call[trip](t, s, "book-trip", booking(day(60)))
		if got.Trip == nil || !strings.Contains(got.Note, "failed") {
			t.Errorf("book-trip = %+v, want that it was booked and the offer failed", got)
		}
	})
	t.Run("cannot be asked", func(t *testing.T) {
		for _, rev := range mcp.Revisions() {
			s := mcptest.Connect(t, newServer(t, shop.Options{}), &mcp.Client{}, rev)
			if got := call[trip](t, s, "book-trip", booking(day(60))); got.Trip == nil || got.Member {
				t.Errorf("%s: book-trip = %+v, want a trip", rev, got)
			}
			refused(t, s, "book-trip", booking(day(60)), "is taken on "+day(60), day(61), "call again")
		}
	})
}

// The user is asked, once, for what is missing and for nothing else.
func TestTripAsksForTheRest(t *testing.T) {
	eras(t, func(t *testing.T, rev mcp.Revision) {
		for _, tt := range []struct {
			name   string
			in     args
			answer args
			fails  error
			form   string   // the properties
			want   []string // in the result
		}{
			{name: "date alone", in: args{"date": day(90)}, answer: args{"customer": "cus-1001", "destination": "tatra"},
				form: "customer destination people", want: []string{`"date":"` + day(90) + `","people":1,"price":"89.00 EUR"`}},
			{name: "nothing", answer: args{"customer": "cus-1001", "destination": "tatra", "date": day(91), "people": 2},
				form: "customer destination date people", want: []string{`"customer":"cus-1001"`, `"date":"` + day(91) + `","people":2,"price":"178.00 EUR"`}},
			{name: "all but the destination", in: args{"date": day(90), "customer": "cus-1001", "people": 4}, answer: args{"destination": "tatra"},
				form: "destination", want: []string{`"people":4`}},
			{name: "given values stay", in: args{"date": day(90), "customer": "cus-1001"}, answer: args{"destination": "tatra", "people": 2, "customer": "cus-1004"},
				form: "destination people", want: []string{`"customer":"cus-1001"`, `"people":2`}},
			{name: "declined", in: args{"date": day(90)}, fails: mcp.ErrDeclined, form: "customer destination people", want: []string{"Nothing was booked: the user did not complete the form."}},
			{name: "dismissed", in: args{"date": day(90)}, fails: mcp.ErrDismissed, form: "customer destination people", want: []string{"Nothing was booked"}},
			{name: "unknown customer", in: args{"date": day(90), "customer": "cus-9"}, want: []string{`no customer "cus-9"`}},
			{name: "unknown customer in the answer", in: args{"date": day(90)}, answer: args{"customer": "Bram", "destination": "tatra"},
				form: "customer destination people", want: []string{`no customer "Bram"`}},
		} {
			t.Run(tt.name, func(t *testing.T) {
				form := ""
				p := &person{
					date:   func(string) (string, error) { return day(99), nil },
					member: func() (bool, error) { return false, nil },
					rest: func(schema string) (args, error) {
						var names []string
						for _, name := range []string{"customer", "destination", "date", "people"} {
							if strings.Contains(schema, `"`+name+`":{`) {
								names = append(names, name)
							}
						}
						form = strings.Join(names, " ")
						return tt.answer, tt.fails
					},
				}
				s := mcptest.Connect(t, newServer(t, shop.Options{}), p.client(), rev)
				res, err := s.CallTool(t.Context(), "book-trip", tt.in)
				if err != nil {
					t.Fatal(err)
				}
				for _, want := range tt.want {
					if !strings.Contains(res.Text(), want) {
						t.Errorf("book-trip = %s, want %s in it", res.Text(), want)
					}
				}
				if form != tt.form || tt.form != "" && !strings.Contains(p.asked[0], "The booking needs more: ") {
					t.Errorf("the form asks for %q in %q, want %q", form, p.asked, tt.form)
				}
			})
		}
	})
}

// The days that are taken in a new shop are Saturdays.
func TestTripOfTheSeed(t *testing.T) {
	saturday := time.Now().UTC().AddDate(0, 0, 7)
	for saturday.Weekday() != time.Saturday {
		saturday = saturday.AddDate(0, 0, 1)
	}
	in := booking(saturday.Format(time.DateOnly))
	in["destination"] = "tatra"
	refused(t, connect(t), "book-trip", in, "is taken")
	in["destination"] = "atlantis"
	refused(t, connect(t), "book-trip", in, "destination", "lofoten")
	in["destination"], in["date"] = "tatra", "next week"
	refused(t, connect(t), "book-trip", in, "date")
	in["date"], in["people"] = day(30), 9
	refused(t, connect(t), "book-trip", in, "people", "at most 8")
	in["people"], in["customer"] = 1, "cus-9"
	refused(t, connect(t), "book-trip", in, `no customer "cus-9"`)
}

// A client that sends an answer again, with the state that it had then, books nothing more.
func TestTripIsBookedOnce(t *testing.T) {
	for name, in := range map[string]args{"another date": booking(day(70)), "the rest": {"date": day(71)}} {
		t.Run(name, func(t *testing.T) {
			p := &person{
				date:   func(string) (string, error) { return day(71), nil },
				member: func() (bool, error) { return true, nil },
				rest:   func(string) (args, error) { return args{"customer": "cus-1002", "destination": "dolomites"}, nil },
			}
			var answered []byte // the request with the answer
			c := p.client()
			c.OnFrame = func(f trace.Frame) {
				if f.Dir == trace.Out && bytes.Contains(f.Msg, []byte("inputResponses")) && answered == nil {
					answered = slices.Clone([]byte(f.Msg))
				}
			}
			srv := newServer(t, shop.Options{})
			s := mcptest.Connect(t, srv, c, mcp.V2026_07_28)
			call[trip](t, s, "book-trip", booking(day(70)))
			answered = nil
			first := call[trip](t, s, "book-trip", in)
			if first.Trip == nil || first.Trip.ID != "trp-1005" || first.Trip.Date != day(71) || answered == nil {
				t.Fatalf("book-trip = %+v, with the answer %s", first, answered)
			}

			near, far := jsonrpc.Pipe()
			served := make(chan error, 1)
			go func() { served <- srv.Serve(t.Context(), far) }()
			for range 2 {
				if err := near.Write(answered); err != nil {
					t.Fatal(err)
				}
				if frame, err := near.Read(nil); err != nil || !bytes.Contains(frame, []byte("trp-1005")) {
					t.Errorf("the answer again = %s, %v; want trp-1005", frame, err)
				}
			}
			near.Close()
			<-served
			if next := call[trip](t, s, "book-trip", booking(day(72))); next.Trip == nil || next.Trip.ID != "trp-1006" {
				t.Errorf("the next trip = %+v, want trp-1006", next)
			}
		})
	}
}

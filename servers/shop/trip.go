package shop

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/schema"
)

// destination is the id of a trip's destination.
type destination string

// destinations are all destinations, with the price for one person. The schema of
// book-trip lists their ids.
var destinations = []struct {
	id    destination
	title string
	price money
}{
	{"lofoten", "Sea kayaking in Lofoten", 149_00},
	{"tatra", "Ridge walk in the High Tatras", 89_00},
	{"cairngorms", "Winter skills in the Cairngorms", 119_00},
	{"dolomites", "Via ferrata in the Dolomites", 135_00},
}

// Enum returns the values for the schema of arguments.
func (destination) Enum() []string {
	ids := make([]string, len(destinations))
	for i, d := range destinations {
		ids[i] = string(d.id)
	}
	return ids
}

// describe returns the title and price of a destination of Enum.
func (d destination) describe() (title string, price money) {
	for _, one := range destinations {
		if one.id == d {
			return one.title, one.price
		}
	}
	return string(d), 0
}

const (
	// maxQuestions bounds the questions of a call for another date.
	maxQuestions = 3
	// maxAhead is the number of days for which trips can be booked.
	maxAhead = 366
	// offered is the number of free days that a question names.
	offered = 3
)

type tripRequest struct {
	Customer    string      `json:"customer,omitempty" doc:"id of the customer, such as cus-1001; absent: the user is asked" max:"100"`
	Destination destination `json:"destination,omitempty" doc:"where to; absent: the user is asked"`
	Date        string      `json:"date,omitempty" doc:"the day, from tomorrow on for a year; if it is absent or taken, the user is asked" format:"date"`
	People      int         `json:"people,omitempty" doc:"number of people; absent: the user is asked with the rest, or one" min:"1" max:"8"`
}

type trip struct {
	ID          string      `json:"id" examples:"trp-1001"`
	Customer    string      `json:"customer" doc:"id of the customer"`
	Destination destination `json:"destination"`
	Title       string      `json:"title" doc:"the activity"`
	Date        string      `json:"date" format:"date"`
	People      int         `json:"people"`
	Price       money       `json:"price" doc:"for all of them" examples:"298.00 EUR"`
}

func (t *trip) fields() []any {
	return []any{&t.ID, &t.Customer, &t.Destination, &t.Date, &t.People, &t.Price}
}

type tripResult struct {
	Trip   *trip  `json:"trip,omitempty" doc:"the booked trip; absent: none was booked"`
	Member bool   `json:"member" doc:"whether the customer is a member now"`
	Note   string `json:"note" doc:"the outcome, in a sentence"`
}

// dateError says that a date cannot be booked, and names free dates.
type dateError struct {
	reason string
	free   []string
}

func (e *dateError) Error() string {
	if len(e.free) == 0 {
		return e.reason + "; every day of the year is taken"
	}
	return e.reason + "; free are " + strings.Join(e.free, ", ")
}

func (s *server) addTrips() {
	mcp.AddTool(s.mcp, mcp.Tool{
		Name: "book-trip", Title: "Book a trip",
		Description: "Books a guided trip for a group of up to eight. A destination takes one group a day: if the day is taken, the user is asked for another, and first for everything that is left out. Afterwards the user is asked whether the customer wants to be a member.",
		Annotations: adds,
	}, s.bookTrip)
}

// bookTrip asks up to three kinds of questions. It runs again from the top with each answer.
// Once keeps its earlier results, and the request identifies the booking: a repeated
// answer does not book again.
func (s *server) bookTrip(ctx context.Context, in tripRequest) (*tripResult, error) {
	request, err := mcp.Once(ctx, "request", func(context.Context) (string, error) { return rand.Text(), nil })
	if err != nil {
		return nil, err
	}
	in, err = s.complete(ctx, in)
	switch {
	case errors.Is(err, mcp.ErrDeclined):
		return &tripResult{Note: "Nothing was booked: the user did not complete the form."}, nil
	case err != nil:
		return nil, err
	}
	booked, err := mcp.Once(ctx, "trip", func(ctx context.Context) (*trip, error) { return s.findDate(ctx, in, request) })
	var unfit *dateError
	switch {
	case errors.As(err, &unfit) && (errors.Is(err, mcp.ErrDeclined) || errors.Is(err, mcp.ErrDismissed)):
		return &tripResult{Note: fmt.Sprintf("Nothing was booked: %s. The user did not name another date.", unfit)}, nil
	case err != nil:
		return nil, err
	}
	out := &tripResult{Trip: booked, Note: fmt.Sprintf("Booked %s on %s.", booked.Title, booked.Date)}
	out.Member, err = s.offerMembership(ctx, in.Customer)
	switch {
	case err == nil, errors.Is(err, mcp.ErrDeclined), errors.Is(err, mcp.ErrDismissed), errors.Is(err, mcp.ErrNotSupported):
	default:
		// The trip stays booked even if the offer fails. If err means that the question about the
		// offer waits for its answer, the question is sent to the client, and not this result.
		out.Note += fmt.Sprintf(" The offer of a membership failed: %s.", quoted(err.Error()))
	}
	return out, nil
}

// complete asks the user, in one form, for the arguments that are missing. People is asked only with
// others.
func (s *server) complete(ctx context.Context, in tripRequest) (tripRequest, error) {
	if in.Customer != "" { // a wrong one is refused before the user is asked
		if _, err := view(ctx, s.db, func(tx *sql.Tx) (none, error) { return none{}, knownCustomer(ctx, tx, in.Customer) }); err != nil {
			return in, err
		}
	}
	var missing, properties []string
	ask := func(absent bool, name, property string) {
		if absent {
			missing, properties = append(missing, name), append(properties, fmt.Sprintf("%q:%s", name, property))
		}
	}
	ask(in.Customer == "", "customer", `{"type":"string","title":"Customer","description":"id of the customer, such as cus-1001","minLength":1,"maxLength":100}`)
	ask(in.Destination == "", "destination", `{"type":"string","title":"Destination","enum":["`+strings.Join(in.Destination.Enum(), `","`)+`"]}`)
	ask(in.Date == "", "date", `{"type":"string","title":"Date","description":"from tomorrow on for a year, such as 2026-07-28","format":"date"}`)
	if missing == nil {
		in.People = max(in.People, 1)
		return in, nil
	}
	names, required := strings.Join(missing, ", "), strings.Join(missing, `","`)
	ask(in.People == 0, "people", `{"type":"integer","title":"People","minimum":1,"maximum":8,"default":1}`)
	form := fmt.Sprintf(`{"type":"object","properties":{%s},"required":["%s"]}`, strings.Join(properties, ","), required)
	res, err := mcp.ElicitForm(ctx, fmt.Sprintf("The booking needs more: %s.", names), json.RawMessage(form), mcp.QuestionKey("rest"))
	switch {
	case errors.Is(err, mcp.ErrNotSupported):
		return in, fmt.Errorf("the booking needs more, and this client cannot ask the user; set %s and call again", names)
	case err != nil:
		return in, err
	case res.Action != "accept":
		return in, mcp.ErrDeclined
	}
	answer, err := json.Marshal(res.Content)
	if err != nil {
		return in, err
	}
	more, err := schema.Decode[tripRequest](answer)
	if err != nil {
		return in, fmt.Errorf("the answer of the user: %w", err)
	}
	return tripRequest{
		cmp.Or(in.Customer, more.Customer), cmp.Or(in.Destination, more.Destination), cmp.Or(in.Date, more.Date), cmp.Or(in.People, more.People, 1),
	}, nil
}

// findDate books the wanted date, or one that the user names instead. If the user names
// none, the error wraps the *dateError of the question.
func (s *server) findDate(ctx context.Context, in tripRequest, request string) (*trip, error) {
	for asked := 1; ; asked++ {
		out, err := change(ctx, s.db, func(tx *sql.Tx) (*trip, error) { return book(ctx, tx, in, request) })
		var unfit *dateError
		if !errors.As(err, &unfit) || asked > maxQuestions || len(unfit.free) == 0 {
			return out, err
		}
		type form struct {
			Date string `json:"date" title:"Date" doc:"another day, such as 2026-07-28" format:"date"`
		}
		answer, err := mcp.Elicit[form](ctx, fmt.Sprintf("%s. Which other day?", unfit), mcp.QuestionKey(fmt.Sprintf("date %d", asked)))
		if errors.Is(err, mcp.ErrNotSupported) {
			return nil, fmt.Errorf("%w; this client cannot ask the user, so call again with another date", unfit)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", unfit, err)
		}
		in.Date = answer.Date
	}
}

// book books a trip, or returns the trip that the same request has already booked.
func book(ctx context.Context, tx *sql.Tx, in tripRequest, request string) (*trip, error) {
	const of = "SELECT id, customer, destination, date, people, price FROM trips "
	t := &trip{}
	err := tx.QueryRowContext(ctx, of+"WHERE request = ?", request).Scan(t.fields()...)
	title, price := in.Destination.describe()
	t.Title = title
	if !errors.Is(err, sql.ErrNoRows) {
		return t, err
	}
	if err := knownCustomer(ctx, tx, in.Customer); err != nil {
		return nil, err
	}
	taken, err := takenDates(ctx, tx, in.Destination)
	if err != nil {
		return nil, err
	}
	if err := checkDate(in.Date, title, time.Now().UTC(), taken); err != nil {
		return nil, err
	}
	n, id, err := nextID(ctx, tx, "trips", "trp")
	if err != nil {
		return nil, err
	}
	*t = trip{id, in.Customer, in.Destination, title, in.Date, in.People, price * money(in.People)}
	_, err = tx.ExecContext(ctx, "INSERT INTO trips (n, id, customer, destination, date, people, price, request) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
		n, t.ID, t.Customer, t.Destination, t.Date, t.People, t.Price, request)
	return t, err
}

func takenDates(ctx context.Context, tx *sql.Tx, to destination) (map[string]bool, error) {
	dates, err := list(ctx, tx, func(date *string) []any { return []any{date} }, "SELECT date FROM trips WHERE destination = ?", to)
	taken := make(map[string]bool, len(dates))
	for _, date := range dates {
		taken[date] = true
	}
	return taken, err
}

// checkDate returns a *dateError if a date cannot be booked.
func checkDate(date, title string, now time.Time, taken map[string]bool) error {
	day, err := time.Parse(time.DateOnly, date)
	if err != nil {
		return err
	}
	today := now.Truncate(24 * time.Hour)
	first, last := today.AddDate(0, 0, 1), today.AddDate(0, 0, maxAhead)
	reason := ""
	switch {
	case day.Before(first):
		reason = date + " is not in the future"
	case day.After(last):
		reason = date + " is too far ahead"
	case taken[date]:
		reason = fmt.Sprintf("%s is taken on %s", title, date)
	default:
		return nil
	}
	var free []string
	for day := range daysFrom(day, first, last) {
		if date := day.Format(time.DateOnly); !taken[date] && len(free) < offered {
			free = append(free, date)
		}
	}
	return &dateError{reason, free}
}

// daysFrom yields the days from first to last, those before day at the end.
func daysFrom(day, first, last time.Time) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		for d := first; !d.After(last); d = d.AddDate(0, 0, 1) {
			if !d.Before(day) && !yield(d) {
				return
			}
		}
		for d := first; !d.After(last) && d.Before(day); d = d.AddDate(0, 0, 1) {
			if !yield(d) {
				return
			}
		}
	}
}

// offerMembership reports whether a customer is a member, and asks one who is not.
func (s *server) offerMembership(ctx context.Context, id string) (bool, error) {
	member, err := view(ctx, s.db, func(tx *sql.Tx) (member bool, err error) {
		err = tx.QueryRowContext(ctx, "SELECT member FROM customers WHERE id = ?", id).Scan(&member)
		return member, err
	})
	if err != nil || member {
		return member, err
	}
	yes, err := mcp.Confirm(ctx, "Should the customer become a member of the shop? It is free, and members hear of new trips first.", mcp.QuestionKey("member"))
	if err != nil || !yes {
		return false, err
	}
	return change(ctx, s.db, func(tx *sql.Tx) (bool, error) {
		_, err := tx.ExecContext(ctx, "UPDATE customers SET member = 1 WHERE id = ?", id)
		return err == nil, err
	})
}

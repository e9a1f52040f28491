// Command trip asks its user three times in one call, on every revision that has questions. Work
// between two questions is in mcp.Once, because toward clients of 2026-07-28 the handler runs again
// with each answer.
//
//	patchbay call book city=Oslo -- go run ./examples/trip
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/patchbay-dev/patchbay/mcp"
)

type Trip struct {
	City string `json:"city"`
}

type Day struct {
	Date string `json:"date" title:"Day of departure" format:"date"`
}

type Seat struct {
	Seat string `json:"seat" enum:"aisle,window"`
}

// booker books trips; hold reserves a seat, and must run once for each call.
type booker struct {
	hold func(ctx context.Context, city, date string) (number int, err error)
}

func (b *booker) book(ctx context.Context, in Trip) (string, error) {
	day, err := mcp.Elicit[Day](ctx, "When do you go to "+in.City+"?")
	if err != nil {
		return refused(err)
	}
	number, err := mcp.Once(ctx, "hold", func(ctx context.Context) (int, error) { return b.hold(ctx, in.City, day.Date) })
	if err != nil {
		return "", err
	}
	place, err := mcp.Elicit[Seat](ctx, "Where do you sit?")
	if err != nil {
		return refused(err)
	}
	yes, err := mcp.Confirm(ctx, fmt.Sprintf("Book %s, %s, %s?", in.City, day.Date, place.Seat))
	if err != nil {
		return refused(err)
	}
	if !yes {
		return "not booked", nil
	}
	return fmt.Sprintf("booked number %d: %s, %s, %s", number, in.City, day.Date, place.Seat), nil
}

// refused turns a refusal into an answer. Other errors, a pending question too, go to the caller.
func refused(err error) (string, error) {
	if errors.Is(err, mcp.ErrDeclined) || errors.Is(err, mcp.ErrDismissed) {
		return "not booked", nil
	}
	return "", err
}

func newServer(b *booker) *mcp.Server {
	srv := &mcp.Server{Name: "trip", Version: "1.0.0"}
	mcp.AddTool(srv, mcp.Tool{Name: "book", Description: "Book a trip"}, b.book)
	return srv
}

func main() {
	held := 0
	b := &booker{hold: func(context.Context, string, string) (int, error) { held++; return held, nil }}
	if err := newServer(b).ServeStdio(context.Background()); err != nil {
		log.Fatal(err)
	}
}

package docs_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/endpoint"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/middleware"
	"github.com/patchbay-dev/patchbay/schema"
)

type Loan struct {
	Book  string `json:"book" doc:"title of the book"`
	Days  int    `json:"days,omitempty" doc:"length of the loan" default:"14" min:"1" max:"28"`
	Shelf string `json:"shelf,omitempty" enum:"main,children,archive"`
}

type Receipt struct {
	Book string    `json:"book"`
	Due  time.Time `json:"due"`
}

func borrow(ctx context.Context, in Loan) (Receipt, error) {
	if in.Book != "Emma" {
		return Receipt{}, fmt.Errorf("no book %q; the library has Emma", in.Book)
	}
	return Receipt{in.Book, time.Now().AddDate(0, 0, in.Days)}, nil
}

type Book struct {
	Title string `json:"title"`
	Year  int    `json:"year"`
}

var books = map[string]Book{"9780141439587": {"Emma", 1815}, "9780141439600": {"A Tale of Two Cities", 1859}}

func book(ctx context.Context, in struct {
	ISBN string `json:"isbn"`
}) (Book, error) {
	b, ok := books[in.ISBN]
	if !ok {
		return Book{}, mcp.ResourceNotFound("library://books/" + in.ISBN)
	}
	return b, nil
}

func isbns(ctx context.Context, prefix string, others map[string]string) (found []string, err error) {
	for isbn := range books {
		if strings.HasPrefix(isbn, prefix) {
			found = append(found, isbn)
		}
	}
	slices.Sort(found)
	return found, nil
}

type Taste struct {
	Genre string `json:"genre" doc:"such as crime"`
	Tone  string `json:"tone,omitempty"`
}

func recommend(ctx context.Context, in Taste) (string, error) {
	return fmt.Sprintf("Recommend a book of the library. Genre: %s. Tone: %s.", in.Genre, in.Tone), nil
}

func genres(ctx context.Context, prefix string, others map[string]string) ([]string, error) {
	return []string{"crime", "poetry", "travel"}, nil
}

type Pickup struct {
	Day    string `json:"day" title:"Day of pickup" format:"date"`
	Branch string `json:"branch,omitempty" enum:"north,south" default:"north"`
}

func reserve(ctx context.Context, in Loan) (string, error) {
	number, err := mcp.Once(ctx, "number", nextNumber)
	if err != nil {
		return "", err
	}
	at, err := mcp.Elicit[Pickup](ctx, "When will you fetch "+in.Book+"?")
	if errors.Is(err, mcp.ErrDeclined) {
		return "not reserved", nil
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s, number %d, %s, %s", in.Book, number, at.Day, at.Branch), nil
}

func nextNumber(context.Context) (int, error) { return 7, nil }

func index(ctx context.Context, _ struct{}) (string, error) {
	for room := 1; room <= 3; room++ {
		if ctx.Err() != nil { // the caller cancelled, or has gone
			return "", context.Cause(ctx)
		}
		mcp.Progress(ctx, float64(room), 3, fmt.Sprint("room ", room))
		mcp.Log(ctx).Info("indexed", "room", room)
	}
	return "done", nil
}

func newLibrary() *mcp.Server {
	srv := &mcp.Server{Name: "library", Version: "1.0.0", Instructions: "Read library://hours before you lend a book."}

	mcp.AddTool(srv, mcp.Tool{
		Name:        "borrow",
		Description: "Lend a book",
		Annotations: &mcp.ToolAnnotations{Destructive: new(false)},
	}, borrow)

	mcp.AddResource(srv, mcp.Resource{URI: "library://hours", Name: "hours"},
		func(context.Context) (string, error) { return "Monday to Friday, 9 to 18", nil })

	mcp.AddResourceTemplate(srv, mcp.ResourceTemplate{
		URITemplate: "library://books/{isbn}",
		Name:        "book",
		Complete:    map[string]mcp.CompleteFunc{"isbn": isbns},
	}, book)

	mcp.AddPrompt(srv, mcp.Prompt{
		Name:        "recommend",
		Description: "Find something to read",
		Complete:    map[string]mcp.CompleteFunc{"genre": genres},
	}, recommend)

	mcp.AddTool(srv, mcp.Tool{Name: "reserve"}, reserve)
	mcp.AddTool(srv, mcp.Tool{Name: "index"}, index)
	return srv
}

func lendFor(srv *mcp.Server, days int) error {
	input, err := schema.For[Loan]()
	if err != nil {
		return err
	}
	input, err = input.With(fmt.Sprintf(`max:"%d"`, days), "days") // names of nested fields may follow
	if err != nil {
		return err
	}
	mcp.AddTool(srv, mcp.Tool{Name: "borrow", Input: input}, borrow)
	return nil
}

func closeForToday(srv *mcp.Server) {
	srv.ResourceUpdated("library://hours")
	srv.Remove(mcp.Feature{Kind: mcp.KindTool, Name: "borrow"})
}

func observed(srv *mcp.Server, logger *slog.Logger) {
	srv.Use(middleware.Log(logger), middleware.MaxResult(1<<20))
}

func logged(srv *mcp.Server, logger *slog.Logger) {
	srv.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			start := time.Now()
			res, err := next.Handle(ctx, req)
			logger.Info(req.Method, "caller", mcp.CallFrom(ctx).Principal, "took", time.Since(start), "error", err)
			return res, err
		})
	})
}

// The limit that is known at run time counts.
func TestLendFor(t *testing.T) {
	srv := newLibrary()
	if err := lendFor(srv, 0); err == nil {
		t.Error("a default above the limit is accepted")
	}
	if err := lendFor(srv, 40); err != nil {
		t.Fatal(err)
	}
	s := mcptest.Connect(t, srv, &mcp.Client{Name: "reader"}, mcp.V2025_11_25)
	for days, fits := range map[int]bool{40: true, 41: false} {
		if res, err := s.CallTool(t.Context(), "borrow", Loan{Book: "Emma", Days: days}); err != nil || res.IsError == fits {
			t.Errorf("borrow for %d days = %v, %v", days, res, err)
		}
	}
}

// lineCount counts the lines of logs.
type lineCount struct{ atomic.Int64 }

func (c *lineCount) Write(p []byte) (int, error) { c.Add(1); return len(p), nil }

// The server of the page does what the page says, on every revision and wire.
func TestServerPage(t *testing.T) {
	client := func() *mcp.Client {
		return &mcp.Client{Name: "reader", OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"day": "2026-12-01"}}, nil
		}}
	}
	var requests lineCount
	server := func() *mcp.Server {
		srv := newLibrary()
		logged(srv, slog.New(slog.NewTextHandler(&requests, nil)))
		observed(srv, slog.New(slog.DiscardHandler))
		return srv
	}
	mcptest.Every(t, server, client, func(t *testing.T, s *mcp.Session) {
		got, err := mcp.CallAs[Receipt](t.Context(), s, "borrow", map[string]any{"book": "Emma"})
		if days := time.Until(got.Due).Hours() / 24; err != nil || days < 13 || days > 15 {
			t.Errorf("borrow = %v, %v", got, err)
		}
		res, err := s.CallTool(t.Context(), "borrow", map[string]any{"book": "Emma", "days": 40, "shelf": "attic"})
		if err != nil || !res.IsError || res.Text() != `days: must be at most 28, got 40; shelf: must be one of "main", "children", "archive", got "attic"` {
			t.Errorf("borrow with two faults = %v, %v", res, err)
		}
		if res, err := s.CallTool(t.Context(), "borrow", Loan{Book: "Nemo", Days: 1}); err != nil || !res.IsError || !strings.Contains(res.Text(), "the library has Emma") {
			t.Errorf("borrow of an unknown book = %v, %v", res, err)
		}
		read, err := s.ReadResource(t.Context(), "library://books/9780141439587")
		if err != nil || read.Contents[0].Text != `{"title":"Emma","year":1815}` {
			t.Errorf("book = %v, %v", read, err)
		}
		notFound := mcp.Errorf(mcp.CodeResourceNotFound, "")
		if !s.Revision().Sessions() {
			notFound = mcp.Errorf(jsonrpc.CodeInvalidParams, "")
		}
		if _, err := s.ReadResource(t.Context(), "library://books/1"); !errors.Is(err, notFound) {
			t.Errorf("an unknown book: %v", err)
		}
		values, err := s.Complete(t.Context(), mcp.Feature{Kind: mcp.KindResourceTemplate, Name: "library://books/{isbn}"}, "isbn", "97801414396", nil)
		if err != nil || !slices.Equal(values.Values, []string{"9780141439600"}) {
			t.Errorf("completion = %v, %v", values, err)
		}
		prompt, err := s.GetPrompt(t.Context(), "recommend", map[string]string{"genre": "crime"})
		if err != nil || len(prompt.Messages) != 1 {
			t.Errorf("prompt = %v, %v", prompt, err)
		}
		res, err = s.CallTool(t.Context(), "reserve", Loan{Book: "Emma", Days: 1})
		if asks := s.Revision() >= mcp.V2025_06_18; err != nil || res.IsError == asks || asks && res.Text() != "Emma, number 7, 2026-12-01, north" {
			t.Errorf("reserve = %v, %v", res, err)
		}
		var steps []string
		res, err = s.CallTool(t.Context(), "index", nil, mcp.OnProgress(func(_, _ float64, m string) { steps = append(steps, m) }))
		if err != nil || res.Text() != "done" || len(steps) != 3 {
			t.Errorf("index = %v, %v, %q", res, err, steps)
		}
	})
	if requests.Load() == 0 {
		t.Error("the middleware saw no request")
	}
}

func serveWeb(ctx context.Context, addr string, srv *mcp.Server, guard *auth.Guard, pages http.Handler) error {
	web := &endpoint.HTTP{Server: srv, Protect: guard.Protect, Handler: pages}
	return web.ListenAndServe(ctx, addr)
}

func TestServeWeb(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := serveWeb(ctx, "127.0.0.1:0", &mcp.Server{Name: "s"}, new(auth.Guard), http.NotFoundHandler()); err != nil {
		t.Error(err)
	}
}

package docs_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

func TestReserve(t *testing.T) {
	got, err := mcptest.Run(t, reserve, Loan{Book: "Emma"}, Pickup{Day: "2026-12-01", Branch: "south"})
	if err != nil || got != "Emma, number 7, 2026-12-01, south" {
		t.Errorf("reserve = %q, %v", got, err)
	}
	got, err = mcptest.Run(t, reserve, Loan{Book: "Emma"}, mcp.ErrDeclined)
	if err != nil || got != "not reserved" {
		t.Errorf("reserve, declined = %q, %v", got, err)
	}
}

func TestReserveOnce(t *testing.T) {
	ctx := mcptest.Context(t, map[string]string{"day": "2026-12-01"})
	if got, err := reserve(ctx, Loan{Book: "Emma"}); err != nil || !strings.HasPrefix(got, "Emma, number 7") {
		t.Errorf("reserve = %q, %v", got, err)
	}
}

func TestBorrow(t *testing.T) {
	client := func() *mcp.Client { return &mcp.Client{Name: "test"} }
	mcptest.Every(t, newLibrary, client, func(t *testing.T, s *mcp.Session) {
		got, err := mcp.CallAs[Receipt](t.Context(), s, "borrow", Loan{Book: "Emma", Days: 3})
		if err != nil || got.Book != "Emma" {
			t.Errorf("borrow = %v, %v", got, err)
		}
	})
}

func TestHours(t *testing.T) {
	mcptest.LeakCheck(t)
	s := mcptest.Connect(t, newLibrary(), &mcp.Client{}, mcp.V2025_06_18)
	if got, err := s.ReadResource(t.Context(), "library://hours"); err != nil || len(got.Contents) != 1 {
		t.Errorf("hours = %v, %v", got, err)
	}
}

func TestDefinition(t *testing.T) {
	if err := newLibrary().Check(); err != nil {
		t.Error(err)
	}
}

func TestTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := &mcp.Server{Name: "slow"}
		mcp.AddTool(srv, mcp.Tool{Name: "wait"}, func(ctx context.Context, _ struct{}) (string, error) {
			<-ctx.Done()
			return "", context.Cause(ctx)
		})
		s := mcptest.Connect(t, srv, &mcp.Client{}, mcp.V2026_07_28)
		if _, err := s.CallTool(t.Context(), "wait", nil); err == nil { // a minute passes at once
			t.Error("the call has no time limit")
		}
	})
}

func TestTrace(t *testing.T) {
	mcptest.Golden(t, "testdata/hours.txt", newLibrary(), &mcp.Client{Name: "test", Version: "1"}, mcp.V2026_07_28,
		func(s *mcp.Session) { s.ReadResource(t.Context(), "library://hours") })
}

func TestRecorded(t *testing.T) {
	mcptest.Replay(t, "testdata/hours.txt", newLibrary()) // the server still answers like that

	mock := mcptest.Mock(t, "testdata/hours.txt") // a server with the recorded answers, for tests of a client
	s := mcptest.Connect(t, mock, &mcp.Client{}, mcp.V2025_11_25)
	if got, err := s.ReadResource(t.Context(), "library://hours"); err != nil || got.Contents[0].Text != "Monday to Friday, 9 to 18" {
		t.Errorf("hours = %v, %v", got, err)
	}
}

func TestBrokenWire(t *testing.T) {
	near, far := mcptest.Pipes(t)
	go newLibrary().Serve(t.Context(), far)
	damaged := mcptest.Faults(near, mcptest.Fault{Frame: 2, Do: mcptest.Close})
	s, err := new(mcp.Client).Connect(t.Context(), mcptest.Wire(damaged))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.ReadResource(t.Context(), "library://hours"); err == nil {
		t.Error("a read over a closed wire succeeded")
	}
}

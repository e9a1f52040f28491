package docs_test

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/servers/shop"
)

func stoves(ctx context.Context, m model.Model, srv *mcp.Server, out io.Writer) error {
	h := &host.Host{Model: m, Allow: []string{"shop/products"}, Person: host.Approver(
		func(ctx context.Context, a *host.Approval) (host.Verdict, error) {
			return host.Verdict{Answer: host.AllowConversation}, nil // show a.Tool and a.Arguments to somebody
		})}
	defer h.Close()
	if err := h.Add(host.Local("shop", srv)); err != nil {
		return err
	}
	for e, err := range h.NewConversation().Events(ctx, "Which stoves are there?") {
		if err != nil {
			return err
		}
		if e.Kind == host.TextCame {
			io.WriteString(out, e.Text)
		}
	}
	return nil
}

// buyer is a model that lists the stoves, puts one into a cart, and says so.
type buyer struct{ n int }

func (*buyer) Info() model.Info { return model.Info{Name: "test/buyer"} }

func (m *buyer) Generate(_ context.Context, _ *model.Request, emit func(model.Delta)) (*model.Response, error) {
	m.n++
	part := model.Part{Text: "One stove."}
	switch m.n {
	case 1:
		part = model.Part{Call: &model.Call{ID: "1", Name: "shop_products", Arguments: json.RawMessage(`{}`)}}
	case 2:
		part = model.Part{Call: &model.Call{ID: "2", Name: "shop_add-to-cart", Arguments: json.RawMessage(`{"product":"prd-1013"}`)}}
	default:
		emit(model.Delta{Text: part.Text})
	}
	return &model.Response{Message: model.Message{Role: model.Assistant, Parts: []model.Part{part}}}, nil
}

func TestHostPage(t *testing.T) {
	var out strings.Builder
	srv, m := shop.New(shop.Options{}), &buyer{}
	if err := stoves(t.Context(), m, srv, &out); err != nil || out.String() != "One stove." || m.n != 3 {
		t.Errorf("stoves prints %q, %v, after %d answers of the model", &out, err, m.n)
	}
}

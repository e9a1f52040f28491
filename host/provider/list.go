package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/patchbay-dev/patchbay/host/model"
)

// Models returns the names of the models that a server offers, in its order, and without what is not part
// of a name in requests. name is PROVIDER or PROVIDER/NAME, as in [Open]. Some providers have no such
// list: azure, bedrock and vertex. The error is an [*model.Error], the cause of ctx, or that of Open.
func Models(ctx context.Context, name string, o Options) ([]string, error) {
	c, _, err := open(name, o)
	if err != nil {
		return nil, err
	}
	x := &exchange{client: c, ctx: ctx}
	if c.line.Unlisted != "" {
		return nil, x.error(model.NoModel, 0, fmt.Sprintf("%s does not list the %s", c.line.Name, c.line.Unlisted), nil)
	}
	at := c.base.JoinPath("models")
	if query := c.line.ListQuery; query != "" {
		at.RawQuery = strings.Trim(at.RawQuery+"&"+query, "&")
	}
	res, err := c.do(ctx, http.MethodGet, at, c.own, nil)
	if err != nil {
		return nil, x.failed(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxListed))
	if err != nil {
		return nil, x.failed(err)
	}
	if res.StatusCode != http.StatusOK {
		return nil, x.refused(res, answer[:min(len(answer), maxRefuse)])
	}
	list := listed(answer)
	if list == nil {
		return nil, x.malformed("the answer is not a list of models: %s", said(string(answer[:min(len(answer), 200)])))
	}
	names := []string{}
	for _, raw := range list {
		var m struct {
			ID string `json:"id"`
		}
		if decode(raw, &m) == nil && m.ID != "" {
			names = append(names, strings.TrimPrefix(m.ID, c.line.ListNames))
		}
	}
	return names, nil
}

// listed returns the models of a list, or nil if it is none.
func listed(answer []byte) []json.RawMessage {
	var list struct {
		Data   []json.RawMessage `json:"data"`
		Models []json.RawMessage `json:"models"`
	}
	if decode(answer, &list) != nil {
		return nil
	}
	if json.Unmarshal(answer, &list.Data) != nil && list.Data == nil {
		return list.Models
	}
	return list.Data
}

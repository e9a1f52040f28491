package spread_test

import (
	"context"
	"fmt"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/gateway/spread"
	"github.com/patchbay-dev/patchbay/mcp"
)

func Example() {
	replica := func(name string) spread.Replica {
		return spread.Replica{Name: name, Open: func(ctx context.Context) (gateway.Upstream, error) {
			client := &mcp.Client{Name: "gateway", Version: "1"}
			gateway.Relay(ctx, client)
			s, err := client.Dial(ctx, "https://"+name+"/mcp")
			if err != nil {
				return nil, err
			}
			return s, nil
		}}
	}
	group := &spread.Group{Name: "jira", Replicas: []spread.Replica{replica("jira.example"), replica("jira2.example")}}
	defer group.Close()
	source := gateway.Source{Name: "jira", Open: group.Open} // for Gateway.Run
	fmt.Println(source.Name, len(group.Status()))
	// Output: jira 2
}

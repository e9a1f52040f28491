package deploy_test

import (
	"fmt"

	"github.com/patchbay-dev/patchbay/config/deploy"
)

func ExampleParse() {
	f, err := deploy.Parse("gateway.yaml", []byte("listen: {http: 127.0.0.1:8443}\nlimits: [100/s]\n"))
	fmt.Println(f.Listen.HTTP, f.Limits, f.Ready.Wait, err)

	_, err = deploy.Parse("gateway.yaml", []byte("limit: [100/s]\nready: {wait: 5}\n"))
	fmt.Println(err)
	// Output:
	// 127.0.0.1:8443 [100/s] 5s <nil>
	// gateway.yaml:1:1: the file has no member "limit"; did you mean "limits"?
	// gateway.yaml:2:15: ready.wait is "5", not a time; write it like 10s, 5m, 12h or 7d
}

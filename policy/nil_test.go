package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/policy"
)

// A nil policy is found when the middleware is made, not in the first call.
func TestNilPolicy(t *testing.T) {
	for _, p := range []policy.Policy{nil, policy.Func(nil), (*policy.Require)(nil)} {
		for name, f := range map[string]func(){
			"Middleware": func() { policy.Middleware("shop", p, nil) },
			"Foreign":    func() { policy.Foreign("shop", true, p, nil) },
		} {
			func() {
				defer func() {
					if v := fmt.Sprint(recover()); !strings.Contains(v, `"shop" is nil`) {
						t.Errorf("%s with %T: panic %s, want one that names the server", name, p, v)
					}
				}()
				f()
			}()
		}
	}
}

package trust_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/patchbay-dev/patchbay/config/trust"
)

// A file is trusted with the content that a person has seen, and not after a change.
func ExampleStore_Trusts() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	file, seen := filepath.Join(dir, "mcp.json"), []byte(`{"mcpServers": {}}`)
	if err := os.WriteFile(file, seen, 0o600); err != nil {
		fmt.Println(err)
		return
	}
	store, err := trust.Open(filepath.Join(dir, "trust.json"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(store.Trusts(file, seen))
	if err := store.Trust(context.Background(), file, seen); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(store.Trusts(file, seen))
	fmt.Println(store.Trusts(file, []byte(`{"mcpServers": {"new": {"command": "sh"}}}`)))
	// Output:
	// false <nil>
	// true <nil>
	// false <nil>
}

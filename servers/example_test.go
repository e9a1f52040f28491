package servers_test

import (
	"fmt"

	"github.com/patchbay-dev/patchbay/servers"
)

func ExampleNew() {
	srv, err := servers.New("sqlite", []string{"--timeout", "5s"}, nil)
	fmt.Println(srv.Title, err)
	_, err = servers.New("sqlite", []string{"--db", "."}, nil)
	fmt.Println(err)
	// Output:
	// SQLite <nil>
	// server "sqlite": database "." is a folder; name a file in it
}

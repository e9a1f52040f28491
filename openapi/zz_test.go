package openapi

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestZZ(t *testing.T) {
	ops, un, docs := 0, 0, 0
	reasons := map[string]int{}
	filepath.Walk(os.Getenv("ZZ"), func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() || !(strings.HasSuffix(path, ".json") || strings.HasSuffix(path, ".yaml")) || strings.HasSuffix(path, "package.json") {
			return nil
		}
		data, _ := os.ReadFile(path)
		began := time.Now()
		d, err := Parse(data)
		if err != nil {
			fmt.Println(path, err)
			return nil
		}
		docs++
		ops += len(d.Operations)
		parsed := time.Since(began)
		for _, u := range d.Unmapped {
			left := strings.Contains(u.Text, "left out")
			if !left {
				un++
			}
			r := u.Text
			if i := strings.IndexByte(r, '"'); i > 0 && !strings.Contains(r, "schema cannot") {
				r = r[:i]
			}
			if reasons[r]++; reasons[r] <= 2 {
				fmt.Println(path, u)
			}
		}
		began = time.Now()
		srv, err := New(d, Options{Base: "https://x.example.com"})
		if err != nil {
			fmt.Println("NEW", path, err)
		}
		_ = srv
		if parsed+time.Since(began) > 200*time.Millisecond {
			fmt.Println(path, len(data), len(d.Operations), parsed, time.Since(began))
		}
		return nil
	})
	fmt.Println(docs, ops, un)
	for r, n := range reasons {
		if n > 5 {
			fmt.Println(n, r)
		}
	}
}

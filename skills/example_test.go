package skills_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"testing/fstest"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/skills"
)

type jsonRaw = json.RawMessage

func Example() {
	// A folder on disk would be the FS of os.OpenRoot("skills").
	folder := fstest.MapFS{
		"tea/SKILL.md":            {Data: []byte("---\nname: tea\ndescription: Makes tea.\n---\n\nSee references/green.md.\n")},
		"tea/references/green.md": {Data: []byte("70 °C, two minutes.\n")},
	}
	srv := &mcp.Server{Name: "kitchen", Version: "1"}
	if _, err := skills.Serve(srv, folder); err != nil {
		log.Fatal(err)
	}
	web := httptest.NewServer(srv)
	defer web.Close()

	ctx := context.Background()
	client := mcp.Client{HTTPClient: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	session, err := client.Dial(ctx, web.URL)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	for skill, err := range skills.List(ctx, session) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(skill.Name, "-", skill.Description, len(skill.Files), "files")
		active, err := skills.Load(ctx, session, skill)
		if err != nil {
			log.Fatal(err)
		}
		page, err := active.Read(ctx, "references/green.md")
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(string(page))
	}
	// Output:
	// tea - Makes tea. 2 files
	// 70 °C, two minutes.
}

// Package custommethod is the port of go-sdk's examples/server/custom-method: a method that the protocol
// does not define.
package custommethod

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"maps"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/mcp"
)

type Phrase struct {
	Text string `json:"text"`
}

type Translation struct {
	Latin string `json:"latin"`
}

var latin = map[string]string{
	"bread":                    "panis",
	"city":                     "urbs",
	"dog":                      "canis",
	"farewell":                 "vale",
	"fire":                     "ignis",
	"hand":                     "manus",
	"hello":                    "salve",
	"horse":                    "equus",
	"house":                    "domus",
	"i came i saw i conquered": "veni vidi vici",
	"king":                     "rex",
	"moon":                     "luna",
	"peace":                    "pax",
	"queen":                    "regina",
	"river":                    "flumen",
	"road":                     "via",
	"school":                   "schola",
	"seize the day":            "carpe diem",
	"sun":                      "sol",
	"tree":                     "arbor",
	"truth":                    "veritas",
	"wine":                     "vinum",
}

func translate(_ context.Context, req *mcp.Request) (mcp.Result, error) {
	var in Phrase
	if err := json.Unmarshal(req.Params, &in); err != nil {
		return nil, err
	}
	out, ok := latin[strings.ToLower(strings.TrimSpace(in.Text))]
	if !ok {
		out = fmt.Sprintf("[%q is not in the list: %q]", in.Text, slices.Sorted(maps.Keys(latin)))
	}
	raw, err := json.Marshal(Translation{out})
	return mcp.RawResult(raw), err
}

func NewServer() *mcp.Server {
	srv := &mcp.Server{Name: "latin-server", Version: "v1.0.0"}
	srv.HandleMethod("latin/translate", translate)
	return srv
}

func Main() {
	ctx := context.Background()
	s, err := (&mcp.Client{Name: "latin-client", Version: "v1.0.0"}).Open(ctx, NewServer())
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	for _, phrase := range []string{"Hello", "Seize the day", "Peace", "Truth", "I came I saw I conquered"} {
		var out Translation
		raw, err := s.Raw(ctx, "latin/translate", Phrase{phrase})
		if err == nil {
			err = json.Unmarshal(raw, &out)
		}
		if err != nil {
			log.Fatalf("translate %q: %v", phrase, err)
		}
		fmt.Printf("%-35s → %s\n", phrase, out.Latin)
	}
}

package inspector

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// A person gets and answers their own questions, an administrator those of everybody, and the state has their number.
func TestInbox(t *testing.T) {
	var got string
	get := at(Gateway{
		Questions: func(by string, all bool) (any, int) { return []string{fmt.Sprint(by, " ", all)}, 1 },
		Answer: func(id, by string, all bool, answer json.RawMessage) error {
			if id != "7" {
				return errors.New("the question is not open any more")
			}
			got = fmt.Sprint(by, " ", all, " ", string(answer))
			return nil
		},
	})
	if w := get("GET", "/ui/inbox", bob); w.Body.String() != `{"questions":["as#bob false"]}`+"\n" {
		t.Errorf("bob has %s", w.Body)
	}
	if w := get("GET", "/ui/state", ada); !strings.Contains(w.Body.String(), `"open":1`) {
		t.Errorf("the state: %s", w.Body)
	}
	if w := get("POST", "/ui/answer/7", ada); w.Code != 200 || got != "as#ada true {}" {
		t.Errorf("HTTP %d %s: %s", w.Code, w.Body, got)
	}
	if w := get("POST", "/ui/answer/8", bob); w.Code != 409 || !strings.Contains(w.Body.String(), "not open any more") {
		t.Errorf("HTTP %d %s", w.Code, w.Body)
	}
	none := at(Gateway{})
	if w := none("POST", "/ui/answer/7", ada); w.Code != 404 {
		t.Errorf("without a gateway: HTTP %d %s", w.Code, w.Body)
	}
	if w := none("GET", "/ui/inbox", ada); w.Body.String() != `{"questions":[]}`+"\n" {
		t.Errorf("without a gateway: %s", w.Body)
	}
}

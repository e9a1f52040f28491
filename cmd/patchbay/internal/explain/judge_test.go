package explain_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/explain"
	"github.com/patchbay-dev/patchbay/inspector"
)

// Rules on a recording of a gateway: what each call was and would be, as policy replay shows it.
func TestJudge(t *testing.T) {
	var b strings.Builder
	for i, tool := range []string{"db_query", "db_drop"} {
		own := strings.TrimPrefix(tool, "db_")
		fmt.Fprintf(&b, `{"dir":"in","conn":"http-1","msg":{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{}}}}`+"\n", i, tool)
		fmt.Fprintf(&b, `{"dir":"out","conn":"db/1","for":{"conn":"http-1","id":%d},"msg":{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{}}}}`+"\n", i, i, own)
		fmt.Fprintf(&b, `{"dir":"out","conn":"http-1","msg":{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}}`+"\n", i)
	}
	rules := []byte("rules:\n  - {name: no drops, when: 'name == \"drop\"', effect: deny}\n  - {name: ada, when: 'principal.id == \"apikey#ada\"', effect: allow}\n")
	got, err := explain.Judge(t.Context(), rules, &inspector.Access{Principal: "apikey#ada"}, strings.NewReader(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{{"1", "db/query", "sent", "allowed", "ada (line 3)"}, {"4", "db/drop", "sent", "! refused", "no drops (line 2)"}}
	for i := range got.Rows {
		got.Rows[i][4], _, _ = strings.Cut(got.Rows[i][4], ":")
	}
	if !reflect.DeepEqual(got.Rows, want) || !strings.Contains(got.Summary, "1 allowed, 1 refused; 1 differ") {
		t.Errorf("the rows are %q, %s", got.Rows, got.Summary)
	}
	for _, tt := range []struct {
		rules string
		by    inspector.Access
		in    string
	}{{"rules: [{when: 'x +'}]", inspector.Access{}, b.String()}, {string(rules), inspector.Access{Roles: []string{"x"}}, b.String()}, {string(rules), inspector.Access{}, "no frames\n"}} {
		if got, err := explain.Judge(t.Context(), []byte(tt.rules), &tt.by, strings.NewReader(tt.in)); err == nil {
			t.Errorf("%q gives %+v", tt.rules, got)
		}
	}
	long := strings.Repeat(b.String(), maxOf)
	if got, err := explain.Judge(t.Context(), rules, &inspector.Access{Principal: "apikey#ada"}, strings.NewReader(long)); err != nil || len(got.Rows) != 1000 || got.Rows[599][3] != "! refused" || !strings.Contains(strings.Join(got.Notes, " "), "200 calls") {
		t.Errorf("of a long recording %d rows, %v", len(got.Rows), err)
	}
}

const maxOf = 600 // recordings of two calls

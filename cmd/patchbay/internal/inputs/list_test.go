package inputs_test

import (
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/inputs"
	"github.com/patchbay-dev/patchbay/config"
)

func TestRows(t *testing.T) {
	since := time.Unix(1_790_000_000, 0)
	t.Setenv("PATCHBAY_INPUT_SET", "x")
	file := &config.File{Inputs: []config.Input{{ID: "kept"}, {ID: "set"}}}
	rows := inputs.Rows(file, []inputs.Kept{{ID: "kept", Since: since}, {ID: "gone", Since: since}})
	if len(rows) != 3 || rows[0].Kept == nil || rows[0].Set || rows[1].Kept != nil || !rows[1].Set || !rows[2].Gone || !rows[2].Kept.Equal(since) {
		t.Errorf("%+v", rows)
	}
}

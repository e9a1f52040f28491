package schema

import (
	"bytes"
	"slices"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// maxRounds bounds the rounds in which [Validator.Fit] looks for nulls: one round finds up to
// 1000, and up to 50 within alternatives.
const maxRounds = 50

// Fit returns data without the members, at any level, that are null where the schema does not
// accept null, if the rest fits the schema. Models send null for properties that they mean to
// omit, in strict modes always. A member stays if the schema allows null there or does not
// mention it; items of an array always stay. All else stays byte for byte; with nothing to leave
// out the result is data.
//
// If data does not fit, the error is that of [Validator.Validate]; a required property that is
// null where null is not accepted counts as missing.
func (v *Validator) Fit(data []byte) ([]byte, error) {
	for round := 0; ; round++ {
		doc, err := parseDocument(data)
		if err != nil {
			return nil, &ValidationError{Faults: []Fault{{Problem: err.Error()}}}
		}
		found := validate(v.root, doc, len(data))
		if len(found.kept) == 0 {
			return data, nil
		}
		rest := doc.withoutNulls(data, found.kept)
		if len(rest) == len(data) || round == maxRounds {
			return nil, faultError(settled(doc, found.kept), found.more)
		}
		data = rest
	}
}

// withoutNulls returns data, which doc was read from, without the members that
// are null and at fault.
func (d *document) withoutNulls(data []byte, found []fault) []byte {
	var places []int32
	for _, f := range found {
		if v := &d.values[f.at]; v.kind == 'n' && v.parent >= 0 && d.values[v.parent].kind == '{' {
			places = append(places, f.at)
		}
	}
	if len(places) == 0 {
		return data
	}
	slices.Sort(places)
	data = bytes.Clone(data)
	for _, at := range slices.Backward(slices.Compact(places)) { // the members before it keep their places
		data = withoutMember(data, int(d.values[at].begin))
	}
	return data
}

// withoutMember removes the member that begins at from, and the comma behind it
// or before it, from data.
func withoutMember(data []byte, from int) []byte {
	name, _ := jsonx.SkipString(data, from)
	end, _ := jsonx.ScanValue(data, jsonx.SkipSpace(data, jsonx.SkipSpace(data, name)+1), 0, 0)
	if behind := jsonx.SkipSpace(data, end); data[behind] == ',' {
		return slices.Delete(data, from, jsonx.SkipSpace(data, behind+1))
	}
	if before := bytes.TrimRight(data[:from], " \t\r\n"); before[len(before)-1] == ',' {
		from = len(before) - 1
	}
	return slices.Delete(data, from, end)
}

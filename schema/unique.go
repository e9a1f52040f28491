package schema

import "strconv"

// uniqueItems finds items that are equal as JSON: 1 and 1.0 are, and objects
// are whatever the order of their members.
type uniqueItems struct {
	seen map[string]int
	key  []byte
}

// add adds item i, whose JSON text is raw. If it equals an earlier item, add returns the index of
// that item and true.
func (u *uniqueItems) add(raw []byte, i int) (earlier int, dup bool) {
	doc, err := parseDocument(raw)
	if err != nil {
		return 0, false
	}
	return u.addValue(doc, root, i)
}

// addValue does the same for the value at a place in doc.
func (u *uniqueItems) addValue(doc *document, at int32, i int) (earlier int, dup bool) {
	u.key = doc.appendCanonical(u.key[:0], at)
	if j, dup := u.seen[string(u.key)]; dup {
		return j, true
	}
	if u.seen == nil {
		u.seen = map[string]int{}
	}
	u.seen[string(u.key)] = i
	return 0, false
}

// repeatFault returns the fault of an item that is equal to an earlier one.
func repeatFault(i, earlier int) string {
	return "items must differ, but item " + strconv.Itoa(i) + " repeats item " + strconv.Itoa(earlier)
}

package schema

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// candidate is a struct field before it is known whether another one hides it.
type candidate struct {
	reflect.StructField
	index   []int
	name    string
	tagged  bool // the name comes from the tag
	through bool // a pointer to an embedded struct leads here

	omitempty, omitzero bool
	rest                bool // a map with the properties that have no field
}

// collect returns the properties of a struct in the order of their
// declaration. Embedded structs are flattened and names that collide are
// resolved as encoding/json does it: the shallowest field wins, then the one
// whose name comes from a tag, then none. Two fields of one struct cannot have one name. A map for all other properties becomes the rest of n.
func (b *builder) collect(n *node) ([]field, error) {
	var all []candidate
	if err := candidates(n.typ, nil, false, map[reflect.Type]bool{}, &all); err != nil {
		return nil, err
	}
	all, err := b.takeRest(n, all)
	if err != nil {
		return nil, err
	}
	byName := map[string][]int{}
	for i, c := range all {
		for _, j := range byName[c.name] {
			if other := all[j]; slices.Equal(other.index[:len(other.index)-1], c.index[:len(c.index)-1]) {
				return nil, fmt.Errorf("%s and %s: both have the JSON name %q; change one, or leave a field out with json:\"-\"", other.Name, c.Name, c.name)
			}
		}
		byName[c.name] = append(byName[c.name], i)
	}
	var fields []field
	for i, c := range all {
		if dominant(all, byName[c.name]) != i {
			continue
		}
		f, err := b.field(&c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Name, err)
		}
		fields = append(fields, f)
	}
	return fields, nil
}

// takeRest makes the map among the candidates the rest of n, and returns the other candidates.
func (b *builder) takeRest(n *node, all []candidate) (fields []candidate, err error) {
	for _, c := range all {
		switch {
		case !c.rest:
			fields = append(fields, c)
			continue
		case n.rest != nil:
			return nil, fmt.Errorf("%s: a struct has one map for other properties at most", c.Name)
		}
		n.rest = c.index
		if n.elem, err = b.place(c.Type.Elem()); err != nil {
			return nil, fmt.Errorf("%s: {}: %w", c.Name, err)
		}
	}
	return fields, nil
}

// dominant returns which of the fields of one name is the property, -1 for
// none.
func dominant(all []candidate, same []int) int {
	rank := func(i int) int {
		r := 2 * len(all[i].index)
		if !all[i].tagged {
			r++
		}
		return r
	}
	best := slices.MinFunc(same, func(a, b int) int { return cmp.Compare(rank(a), rank(b)) })
	for _, i := range same {
		if i != best && rank(i) == rank(best) {
			return -1
		}
	}
	return best
}

func candidates(t reflect.Type, at []int, through bool, open map[reflect.Type]bool, all *[]candidate) error {
	if open[t] {
		return nil // embeds itself through a pointer
	}
	open[t] = true
	defer delete(open, t)
	for i := range t.NumField() {
		sf := t.Field(i)
		embedded := sf.Type
		if embedded.Kind() == reflect.Pointer {
			embedded = embedded.Elem()
		}
		tag := sf.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		c := candidate{StructField: sf, index: append(slices.Clone(at), i), name: name, tagged: name != "", through: through}
		flatten := sf.Anonymous && name == "" && embedded.Kind() == reflect.Struct
		for option := range strings.SplitSeq(options, ",") {
			switch key, _, _ := strings.Cut(option, ":"); key {
			case "omitempty":
				c.omitempty = true
			case "omitzero":
				c.omitzero = true
			case "embed":
				c.rest = sf.Type.Kind() == reflect.Map && sf.Type.Key().Kind() == reflect.String
				if !c.rest && embedded.Kind() != reflect.Struct {
					return fmt.Errorf("%s.%s: json option %q works for structs, and maps with strings as keys", t, sf.Name, option)
				}
				flatten = !c.rest
			case "string", "format", "case":
				return fmt.Errorf("%s.%s: json option %q is not supported", t, sf.Name, option)
			}
		}
		switch {
		case tag == "-":
			continue
		case flatten:
			if !sf.IsExported() && sf.Type.Kind() == reflect.Pointer {
				// Decoding could not set it.
				return fmt.Errorf("%s: embedded pointer to unexported %s; embed the struct itself", t, embedded)
			}
			if err := candidates(embedded, c.index, through || sf.Type.Kind() == reflect.Pointer, open, all); err != nil {
				return err
			}
			continue
		case !sf.IsExported():
			continue
		}
		if c.name == "" {
			c.name = sf.Name
		}
		*all = append(*all, c)
	}
	return nil
}

// field compiles one property.
func (b *builder) field(c *candidate) (field, error) {
	f := field{name: c.name, goName: c.Name, index: c.index, optional: c.omitempty || c.omitzero || c.through, tag: c.Tag}
	tags, err := b.tagsOf(c.Tag)
	if err != nil {
		return f, err
	}
	if f.spec, err = b.place(c.Type); err != nil {
		return f, err
	}
	if err := b.refine(&f.spec, &tags); err != nil {
		return f, err
	}
	if b.out {
		f.written(c)
		return f, nil
	}
	f.required = f.must(&tags)
	return f, nil
}

// tagsOf reads the tags of a field.
func (b *builder) tagsOf(tag reflect.StructTag) (tagged, error) {
	if err := checkTwice(tag); err != nil {
		return tagged{}, err
	}
	t, err := readTags(tag)
	if b.out {
		t.hasDefault, t.header = false, "" // these are for arguments
	}
	return t, err
}

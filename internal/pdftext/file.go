package pdftext

import (
	"bytes"
	"context"
	"strconv"
)

// file finds the objects of a PDF. It keeps where they are and not what they are, so that its memory has a bound.
type file struct {
	ctx     context.Context
	data    []byte
	work    int // bytes that may still be parsed or decoded
	err     error
	where   map[ref]place
	trailer dict
	packed  map[ref]*pack // object streams
	fonts   map[ref]*font
	deep    int // objects that are being read, as the length of one is in another one
}

// place is where an object is: at an offset of the file, or the n-th one of an object stream.
type place struct{ at, in int32 }

// pack is a decoded object stream.
type pack struct {
	data    []byte
	offsets map[ref]int
}

// page is a page with what it inherits.
type page struct{ contents, resources any }

// spend reports whether there may be more work, and counts it.
func (f *file) spend(bytes int) bool {
	if f.work -= bytes; f.err == nil && (f.work < 0 || f.ctx.Err() != nil) {
		f.work, f.err = -1, ErrTooMuch
	}
	return f.err == nil
}

// open finds the pages.
func (f *file) open() ([]page, error) {
	at := bytes.Index(f.data[:min(len(f.data), 1024)], []byte("%PDF-"))
	if at < 0 {
		return nil, ErrDamaged
	}
	f.data = f.data[at:]
	f.where, f.trailer, f.packed, f.fonts = map[ref]place{}, dict{}, map[ref]*pack{}, map[ref]*font{}
	if end := bytes.LastIndex(f.data, []byte("startxref")); end >= 0 {
		start, _ := (&parser{data: f.data, at: end + len("startxref")}).next().(float64)
		f.table(int(start))
	}
	pages := f.pages()
	if len(pages) == 0 && f.trailer["Encrypt"] == nil {
		f.rebuild()
		pages = f.pages()
	}
	switch {
	case f.ctx.Err() != nil:
		return nil, context.Cause(f.ctx)
	case f.trailer["Encrypt"] != nil:
		return nil, ErrEncrypted
	case len(pages) > 0:
		return pages, nil
	case f.err != nil:
		return nil, f.err
	}
	return nil, ErrDamaged
}

// table reads cross-reference tables and streams, from the newest one to the oldest.
func (f *file) table(at int) {
	seen := map[int]bool{}
	for todo := []int{at}; len(todo) > 0; todo = todo[1:] {
		at = todo[0]
		if at <= 0 || at >= len(f.data) || seen[at] || len(seen) == 1000 {
			continue
		}
		seen[at] = true
		p := &parser{data: f.data, at: at}
		var d dict
		if p.next() == keyword("xref") {
			d = f.plainTable(p)
		} else if s, ok := f.objectAt(at, 0).(*stream); ok {
			d = s.dict
			f.streamTable(s)
		}
		for key, v := range d {
			if _, has := f.trailer[key]; !has {
				f.trailer[key] = v
			}
		}
		for _, key := range []name{"XRefStm", "Prev"} {
			if n, ok := d[key].(float64); ok {
				todo = append(todo, int(n))
			}
		}
	}
}

func (f *file) plainTable(p *parser) dict {
	for begin := p.at; f.spend(p.at - begin); {
		begin = p.at
		first, ok := p.next().(float64)
		if !ok { // "trailer"
			d, _ := p.next().(dict)
			return d
		}
		count, _ := p.next().(float64)
		for i := range int(count) {
			offset, _ := p.next().(float64)
			p.next()
			kind := p.next()
			if kind == keyword("n") {
				f.put(int(first)+i, place{at: int32(offset)})
			} else if kind != keyword("f") {
				return nil
			}
		}
	}
	return nil
}

func (f *file) streamTable(s *stream) {
	data, widths, index := f.decode(s), f.list(s.dict["W"]), f.list(s.dict["Index"])
	var w [3]int
	for i := range min(3, len(widths)) {
		w[i] = min(max(f.int(widths[i], 0), 0), 8)
	}
	if index == nil {
		index = array{0.0, s.dict["Size"]}
	}
	row := w[0] + w[1] + w[2]
	for i := 0; i+1 < len(index) && row > 0; i += 2 {
		first := f.int(index[i], 0)
		for n := range f.int(index[i+1], 0) {
			if len(data) < row {
				return
			}
			kind := 1
			if w[0] > 0 {
				kind = bigEndian(data[:w[0]])
			}
			where := bigEndian(data[w[0] : w[0]+w[1]])
			switch kind {
			case 1:
				f.put(first+n, place{at: int32(where)})
			case 2:
				f.put(first+n, place{in: int32(where)})
			}
			data = data[row:]
		}
	}
}

// put notes where an object is, unless a newer table has said so.
func (f *file) put(num int, p place) {
	if _, has := f.where[ref(num)]; !has && len(f.where) < maxObjects {
		f.where[ref(num)] = p
	}
}

// rebuild finds objects without a table, as that of a damaged file is wrong.
func (f *file) rebuild() {
	clear(f.where)
	clear(f.packed)
	var packs []ref
	for at := 0; f.err == nil; {
		i := bytes.Index(f.data[at:], []byte("obj"))
		if i < 0 {
			break
		}
		f.spend(i)
		at += i + len("obj")
		begin, num := beginning(f.data[:at-len("obj")])
		if begin < 0 || len(f.where) >= maxObjects {
			continue
		}
		f.where[num] = place{at: int32(begin)}
		switch v := f.objectAt(begin, num).(type) {
		case *stream:
			if v.dict["Type"] == name("ObjStm") {
				packs = append(packs, num)
			}
			f.adopt(v.dict)
			if end := len(v.raw); end > 0 { // nothing in it is an object of this file
				at = max(at, cap(f.data)-cap(v.raw)+end)
			}
		case dict:
			if v["Type"] == name("Catalog") {
				f.trailer["Root"] = num
			}
		}
	}
	for _, num := range packs {
		for object := range f.unpack(num).offsets {
			f.put(int(object), place{in: int32(num)})
			if d, ok := f.object(object).(dict); ok && d["Type"] == name("Catalog") && f.trailer["Root"] == nil {
				f.trailer["Root"] = object
			}
		}
	}
	for at := 0; ; {
		i := bytes.Index(f.data[at:], []byte("trailer"))
		if i < 0 || !f.spend(i+len("trailer")) {
			return
		}
		at += i + len("trailer")
		d, _ := (&parser{data: f.data, at: at}).next().(dict)
		f.adopt(d)
	}
}

// adopt takes the members of a trailer that matter.
func (f *file) adopt(d dict) {
	for _, key := range []name{"Root", "Encrypt"} {
		if r, ok := d[key].(ref); ok {
			f.trailer[key] = r
		}
	}
}

// beginning returns where "12 0 " at the end of some data begins, or -1, and the 12.
func beginning(data []byte) (int, ref) {
	at := len(data)
	for range 2 { // the generation, then the number
		end := at
		for at > 0 && isSpace(data[at-1]) {
			at--
		}
		digits := at
		for at > 0 && data[at-1] >= '0' && data[at-1] <= '9' && digits-at < 10 {
			at--
		}
		if end == digits && end != len(data) || at == digits {
			return -1, 0
		}
		data = data[:digits]
	}
	n, err := strconv.Atoi(string(data[at:]))
	if err != nil {
		return -1, 0
	}
	return at, ref(n)
}

// objectAt reads the object at an offset, if it has the number; 0: any.
func (f *file) objectAt(at int, num ref) any {
	if at < 0 || at >= len(f.data) {
		return nil
	}
	p := &parser{data: f.data, at: at}
	has, ok := p.next().(float64)
	p.next()
	if !ok || num != 0 && ref(has) != num || p.next() != keyword("obj") {
		return nil
	}
	v := p.next()
	f.spend(p.at - at)
	d, ok := v.(dict)
	if !ok || p.next() != keyword("stream") {
		return v
	}
	rest := f.data[p.at:]
	if rest = bytes.TrimPrefix(rest, []byte("\r")); len(rest) > 0 && rest[0] == '\n' {
		rest = rest[1:]
	}
	if n := f.int(d["Length"], -1); n >= 0 && n <= len(rest) {
		if p := (&parser{data: rest, at: n}); p.next() == keyword("endstream") {
			return &stream{d, rest[:n]}
		}
	}
	n := bytes.Index(rest, []byte("endstream"))
	if n < 0 {
		n = len(rest)
	}
	f.spend(n)
	return &stream{d, rest[:n]}
}

// object returns an object, or nil if there is none.
func (f *file) object(num ref) any {
	p, ok := f.where[num]
	if !ok || f.deep == maxNested || !f.spend(1000) {
		return nil
	}
	f.deep++
	defer func() { f.deep-- }()
	if p.in == 0 {
		return f.objectAt(int(p.at), num)
	}
	s := f.unpack(ref(p.in))
	at, ok := s.offsets[num]
	if !ok || at < 0 || at >= len(s.data) {
		return nil
	}
	in := &parser{data: s.data, at: at}
	v := in.next()
	f.spend(in.at - at)
	return v
}

// unpack returns an object stream.
func (f *file) unpack(num ref) *pack {
	if s := f.packed[num]; s != nil {
		return s
	}
	s := &pack{offsets: map[ref]int{}}
	f.packed[num] = s // also while it is read, for one that is in itself
	if f.where[num].in != 0 {
		return s
	}
	from, ok := f.objectAt(int(f.where[num].at), num).(*stream)
	if !ok {
		return s
	}
	s.data = f.decode(from)
	head := &parser{data: s.data}
	for range min(f.int(from.dict["N"], 0), maxObjects) {
		object, ok := head.next().(float64)
		offset, _ := head.next().(float64)
		if !ok {
			break
		}
		s.offsets[ref(object)] = f.int(from.dict["First"], 0) + int(offset)
	}
	return s
}

// resolve returns what a reference leads to, and any other value itself.
func (f *file) resolve(v any) any {
	for range maxNested {
		r, ok := v.(ref)
		if !ok {
			return v
		}
		v = f.object(r)
	}
	return nil
}

// dict returns the dictionary that a value is or leads to, also that of a stream, or nil.
func (f *file) dict(v any) dict {
	switch v := f.resolve(v).(type) {
	case dict:
		return v
	case *stream:
		return v.dict
	}
	return nil
}

// list returns the array that a value is or leads to, or the value alone.
func (f *file) list(v any) array {
	switch v := f.resolve(v).(type) {
	case nil:
		return nil
	case array:
		return v
	default:
		return array{v}
	}
}

func (f *file) int(v any, none int) int {
	if n, ok := f.resolve(v).(float64); ok && n > -1e9 && n < 1e9 {
		return int(n)
	}
	return none
}

// pages returns the pages of the file in order.
func (f *file) pages() (all []page) {
	seen := map[ref]bool{}
	var walk func(v any, from page, deep int)
	walk = func(v any, from page, deep int) {
		if r, ok := v.(ref); ok {
			if seen[r] {
				return
			}
			seen[r] = true
		}
		d := f.dict(v)
		if d == nil || deep == 0 || len(all) == maxPages {
			return
		}
		if own, has := d["Resources"]; has {
			from.resources = own
		}
		kids, has := d["Kids"]
		if !has {
			from.contents = d["Contents"]
			all = append(all, from)
			return
		}
		for _, kid := range f.list(kids) {
			walk(kid, from, deep-1)
		}
	}
	walk(f.dict(f.trailer["Root"])["Pages"], page{}, maxNested)
	return all
}

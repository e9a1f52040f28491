package pdftext

import (
	"bytes"
	"compress/flate"
	"encoding/ascii85"
	"encoding/binary"
	"io"
)

// decode returns the content of a stream; of a damaged one, as much as there is. The content of pictures is nil.
func (f *file) decode(s *stream) []byte {
	data := s.raw
	filters, parameters := f.list(s.dict["Filter"]), f.list(s.dict["DecodeParms"])
	for i, v := range filters {
		if i == 8 {
			return nil
		}
		var parms dict
		if i < len(parameters) {
			parms = f.dict(parameters[i])
		}
		most := min(maxDecoded, f.work)
		switch f.resolve(v) {
		case name("FlateDecode"), name("Fl"):
			data = f.predicted(inflate(data, most), parms)
		case name("LZWDecode"), name("LZW"):
			early, ok := f.resolve(parms["EarlyChange"]).(float64)
			if !ok {
				early = 1
			}
			data = f.predicted(unLZW(data, int(early), most), parms)
		case name("ASCII85Decode"), name("A85"):
			data = un85(data)
		case name("ASCIIHexDecode"), name("AHx"):
			data = []byte((&parser{data: data, at: -1}).hex())
		case name("RunLengthDecode"), name("RL"):
			data = unRun(data, most)
		default:
			return nil
		}
		f.spend(len(data))
	}
	return data
}

func inflate(data []byte, most int) []byte {
	if len(data) < 2 {
		return nil
	}
	for _, head := range []int{2, 0} { // of zlib, whose check sum nobody writes wrongly on purpose; some write none
		out, _ := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(data[head:])), int64(most)))
		if len(out) > 0 {
			return out
		}
	}
	return nil
}

func unLZW(data []byte, early, most int) []byte {
	var out []byte
	var at, size [4096]int // of the text of each code in out
	next, width, last := 258, 9, -1
	bits, have := 0, 0
	for _, b := range data {
		for bits, have = bits<<8|int(b), have+8; have >= width; {
			have -= width
			code := bits >> have & (1<<width - 1)
			bits &= 1<<have - 1
			begin := len(out)
			switch {
			case code == 257 || begin > most:
				return out
			case code == 256:
				next, width, last = 258, 9, -1
				continue
			case code < 256:
				out = append(out, byte(code))
			case code < next || code == next && last >= 0:
				if code == next { // the text of the code before, and its first byte
					at[code], size[code] = last, begin-last+1
				}
				for i := range size[code] {
					out = append(out, out[at[code]+i])
				}
			default:
				return out
			}
			if last >= 0 && next < 4096 {
				at[next], size[next] = last, begin-last+1
				next++
			}
			last = begin
			width = 9
			for width < 12 && next+early >= 1<<width {
				width++
			}
		}
	}
	return out
}

func un85(data []byte) []byte {
	data, _, _ = bytes.Cut(data, []byte("~"))
	data = bytes.TrimPrefix(bytes.TrimSpace(data), []byte("<"))
	out := make([]byte, 4*len(data)) // each may be a z
	n, _, _ := ascii85.Decode(out, data, true)
	return out[:n]
}

func unRun(data []byte, most int) []byte {
	var out []byte
	for i := 0; i+1 < len(data) && len(out) < most; {
		n := int(data[i])
		switch {
		case n == 128:
			return out
		case n < 128:
			out = append(out, data[i+1:min(i+2+n, len(data))]...)
			i += n + 2
		default:
			out = append(out, bytes.Repeat(data[i+1:i+2], 257-n)...)
			i += 2
		}
	}
	return out
}

// predicted undoes the predictors of PNG and TIFF.
func (f *file) predicted(data []byte, parms dict) []byte {
	predictor := f.int(parms["Predictor"], 1)
	if predictor < 2 {
		return data
	}
	colors, bits, columns := f.int(parms["Colors"], 1), f.int(parms["BitsPerComponent"], 8), f.int(parms["Columns"], 1)
	if colors < 1 || colors > 64 || bits < 1 || bits > 32 || columns < 1 || columns > 1<<20 {
		return nil
	}
	pixel, row := (colors*bits+7)/8, (colors*bits*columns+7)/8
	out := make([]byte, 0, len(data))
	before := make([]byte, row)
	for len(data) > 0 {
		kind := byte(1) // of TIFF: the difference to the pixel before
		if predictor >= 10 {
			kind, data = data[0], data[1:]
		}
		n := min(row, len(data))
		begin := len(out)
		out = append(out, data[:n]...)
		data = data[n:]
		line := out[begin:]
		for i := range line {
			var left, corner byte
			if i >= pixel {
				left, corner = line[i-pixel], before[i-pixel]
			}
			switch kind {
			case 1:
				line[i] += left
			case 2:
				line[i] += before[i]
			case 3:
				line[i] += byte((int(left) + int(before[i])) / 2)
			case 4:
				line[i] += paeth(int(left), int(before[i]), int(corner))
			}
		}
		if n == row {
			before = line
		}
	}
	return out
}

func paeth(a, b, c int) byte {
	pa, pb, pc := max(b-c, c-b), max(a-c, c-a), max(a+b-2*c, 2*c-a-b)
	switch {
	case pa <= pb && pa <= pc:
		return byte(a)
	case pb <= pc:
		return byte(b)
	}
	return byte(c)
}

// bigEndian returns the number in at most 8 bytes.
func bigEndian(b []byte) int {
	var full [8]byte
	copy(full[8-min(8, len(b)):], b)
	return int(binary.BigEndian.Uint64(full[:]))
}

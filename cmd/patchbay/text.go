package main

import (
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/entry"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
)

// Short names for functions that most verbs use; package screen documents them.
var (
	visible  = screen.Visible
	oneLine  = screen.OneLine
	columns  = screen.Columns
	cut      = screen.Cut
	pad      = screen.Pad
	wrap     = screen.Wrap
	paint    = screen.Paint
	plain    = screen.Plain
	indented = screen.Indented
	bytesOf  = screen.Bytes

	shell      = screen.Shell
	quantity   = screen.Quantity
	clip       = screen.Clip
	lastLines  = screen.LastLines
	didYouMean = screen.DidYouMean
	shortTime  = screen.ShortTime
	age        = screen.Age
	about      = screen.About

	here     = entry.Here
	hereLine = entry.HereLine
	fileOf   = entry.File
	where    = entry.Where
	cutLast  = entry.CutLast

	isServerURL = entry.IsServerURL
	asURL       = entry.AsURL
)

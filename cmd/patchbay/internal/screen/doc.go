// Package screen prepares text for a terminal: it replaces control characters by visible ones,
// measures columns, wraps and cuts lines, and renders Markdown and JSON. Colours come from the
// terminal's 16-colour palette, so they suit light and dark backgrounds.
package screen

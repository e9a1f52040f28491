// Package screen puts text on a terminal: it makes visible what a terminal would obey, measures
// columns, breaks and cuts lines, and renders Markdown and JSON. Colour is that of the
// terminal's own sixteen, so that it fits light and dark ones.
package screen

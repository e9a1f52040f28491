// Package layers holds tests of the module's structure: the imports that each
// folder may have, that every package has a comment, and that comments, texts
// and pages are plain English.
package layers

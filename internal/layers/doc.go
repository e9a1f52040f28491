// Package layers holds tests of the module's structure: the imports that each
// folder may have, and that every package has a comment.
package layers

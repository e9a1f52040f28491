// Package layers holds the tests of the house: what each folder may import, and
// that every package says what it is.
package layers

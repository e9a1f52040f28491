// Package check has the tests of the chart of Helm, the file of Compose and the second image: with the libraries of Helm, Kubernetes, Compose and
// BuildKit, and by running what the chart describes.
package check

// Package web holds what the transports over HTTP share: the guard against requests that are not
// meant for a server, bodies and event streams of bounded size, and the redirects that a client
// follows.
package web

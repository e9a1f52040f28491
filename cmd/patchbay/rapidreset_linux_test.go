package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/patchbay-dev/patchbay/internal/listen"
	"github.com/patchbay-dev/patchbay/internal/testcert"
)

// A client that opens requests without end and resets all others at once (CVE-2023-44487) costs the
// headers of the requests that wait for a place: net/http keeps four times as many as a connection
// may have open (trap 27). So that number is bounded, and other clients are served afterwards.
func TestRapidReset(t *testing.T) {
	t.Chdir(t.TempDir())
	ca := testcert.New(t, "ca.pem")
	ca.Sign(t, &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}, "server.pem", "server.key")
	cmd, stderr := program(t, "serve", "everything", "--http", "127.0.0.1:0", "--tls-cert", "server.pem", "--tls-key", "server.key")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	stderr.await(t, `listening on https://\S+/mcp`)
	addr := regexp.MustCompile(`https://([^/]+)/`).FindStringSubmatch(stderr.String())[1]
	roots := x509.NewCertPool()
	roots.AddCert(ca.Cert)

	var header bytes.Buffer
	enc := hpack.NewEncoder(&header)
	for _, f := range [][2]string{{":method", "POST"}, {":scheme", "https"}, {":authority", addr}, {":path", "/mcp"}, {"content-type", "application/json"}} {
		enc.WriteField(hpack.HeaderField{Name: f[0], Value: f[1], Sensitive: true})
	}
	enc.WriteField(hpack.HeaderField{Name: "x-fill", Value: strings.Repeat("\x7e", 55<<10), Sensitive: true})
	attack := func() error {
		conn, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: roots, NextProtos: []string{"h2"}})
		if err != nil {
			return err
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(time.Minute))
		conn.Write([]byte(http2.ClientPreface))
		fr := http2.NewFramer(conn, conn)
		fr.WriteSettings()
		first, err := fr.ReadFrame()
		if err != nil {
			return err
		}
		settings, ok := first.(*http2.SettingsFrame)
		if !ok {
			return fmt.Errorf("the first frame is %v", first)
		}
		open, _ := settings.Value(http2.SettingMaxConcurrentStreams)
		if open != listen.MaxStreams {
			t.Errorf("a connection may have %d requests open, want %d", open, listen.MaxStreams)
		}
		go func() { // responses must not delay the attack; ends with the connection
			in := http2.NewFramer(nil, conn)
			for {
				if _, err := in.ReadFrame(); err != nil {
					return
				}
			}
		}()
		for n := range uint32(2000) {
			id := 2*n + 1
			rest := header.Bytes()
			for at := 0; err == nil && at < len(rest); at += 16 << 10 {
				part := rest[at:min(len(rest), at+16<<10)]
				if end := at+len(part) == len(rest); at == 0 {
					err = fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: part, EndHeaders: end})
				} else {
					err = fr.WriteContinuation(id, end, part)
				}
			}
			if err == nil && n >= open-1 {
				err = fr.WriteRSTStream(id, http2.ErrCodeCancel)
			}
			if err != nil {
				return nil // the server has closed the connection
			}
		}
		return nil
	}
	var attackers sync.WaitGroup
	for range 8 {
		attackers.Go(func() {
			if err := attack(); err != nil {
				t.Error(err)
			}
		})
	}
	attackers.Wait()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	kb, _ := strconv.Atoi(string(m[1]))
	t.Logf("the program took %d MiB", kb>>10) // the amount depends on the speed of the machine
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	resp, err := client.Get("https://" + addr + "/nowhere")
	if err != nil {
		t.Fatalf("nobody else is served: %v", err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusNotFound {
		t.Errorf("another client gets %s", resp.Status)
	}
}

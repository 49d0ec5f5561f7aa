package router

import (
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// silentProxy passes bytes on until it falls silent. Its connections then stay open, and nothing passes; new ones pass bytes.
type silentProxy struct {
	listener net.Listener
	mu       sync.Mutex
	silent   []*bool
}

func startSilentProxy(t *testing.T, target string) *silentProxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	proxy := &silentProxy{listener: listener}
	go proxy.accept(target)
	return proxy
}

func (p *silentProxy) accept(target string) {
	for {
		incoming, err := p.listener.Accept()
		if err != nil {
			return
		}
		outgoing, err := net.Dial("tcp", target)
		if err != nil {
			incoming.Close()
			continue
		}
		isSilent := new(bool)
		p.mu.Lock()
		p.silent = append(p.silent, isSilent)
		p.mu.Unlock()
		go p.pass(incoming, outgoing, isSilent)
		go p.pass(outgoing, incoming, isSilent)
	}
}

func (p *silentProxy) pass(from io.Reader, to io.WriteCloser, isSilent *bool) {
	defer to.Close()
	buffer := make([]byte, 4096)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		p.mu.Lock()
		passes := !*isSilent
		p.mu.Unlock()
		if passes {
			to.Write(buffer[:n])
		}
	}
}

func (p *silentProxy) fallSilent() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, isSilent := range p.silent {
		*isSilent = true
	}
}

func TestAConnectionThatFellSilentIsReplaced(t *testing.T) {
	target := os.Getenv("TRIVET_GRPC_ADDRESS")
	if target == "" || strings.HasPrefix(target, "unix:") {
		t.Skip("TRIVET_GRPC_ADDRESS is no TCP address")
	}
	proxy := startSilentProxy(t, target)
	router := New(connect(t, proxy.listener.Addr().String()), Options{Model: "qwen3-32b", Deadline: time.Second})
	if choice := choose(t, router, 1000); choice.Err != nil {
		t.Fatalf("no prediction: %v", choice.Err)
	}
	proxy.fallSilent()
	if choice := choose(t, router, 1000); choice.Err == nil {
		t.Fatal("a prediction came through a silent connection")
	}
	for start := time.Now(); choose(t, router, 1000).Err != nil; {
		if time.Since(start) > time.Minute {
			t.Fatal("no prediction within a minute")
		}
	}
}

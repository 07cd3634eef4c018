// Many connections of one kind, held idle or read slowly, and long downloads: the load of run.py.
//
//	client idle PROTOCOL HOST:PORT COUNT        a small request each, then nothing
//	client slow PROTOCOL HOST:PORT COUNT PATH   one byte a second is taken of each answer
//	client load PROTOCOL HOST:PORT 1 PATH       an answer is read to its end
//
// PROTOCOL is h1, tls, h2 or h3. It prints "ready" when all connections stand, the bytes of a
// download when it has ended, and goes when its input ends.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// How many handshakes are under way at a time, and over how many UDP ports.
const (
	handshakes = 32
	ports      = 16
)

// An answer that can be read, slowly or to its end.
type answer interface{ io.Reader }

// What opens a connection and asks for a path over it.
type opener func(address, path string, windowBytes int64) (answer, error)

func main() {
	if len(os.Args) < 5 {
		fail(fmt.Errorf("usage: client idle|slow|load h1|tls|h2|h3 HOST:PORT COUNT [PATH]"))
	}
	what, protocol, address := os.Args[1], os.Args[2], os.Args[3]
	count, err := strconv.Atoi(os.Args[4])
	fail(err)
	path := "/small"
	if len(os.Args) > 5 {
		path = os.Args[5]
	}
	open := map[string]opener{"h1": openClear, "tls": openTLS, "h2": openH2, "h3": openH3}[protocol]
	if open == nil {
		fail(fmt.Errorf("no protocol %q", protocol))
	}
	if what == "load" {
		body, err := open(address, path, 8<<20)
		fail(err)
		bytes, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, body, make([]byte, 1<<20))
		fail(err)
		fmt.Println(bytes)
		return
	}
	answers := openAll(open, address, path, count)
	for _, body := range answers {
		if what == "slow" {
			go sip(body)
		} else {
			_, err := io.Copy(io.Discard, body)
			fail(err)
		}
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func openAll(open opener, address, path string, count int) []answer {
	answers := make([]answer, count)
	room := make(chan struct{}, handshakes)
	var all sync.WaitGroup
	for i := range answers {
		all.Add(1)
		room <- struct{}{}
		go func() {
			defer all.Done()
			body, err := open(address, path, 64<<10)
			fail(err)
			answers[i] = body
			<-room
		}()
	}
	all.Wait()
	return answers
}

// Takes a byte a second.
func sip(body answer) {
	one := make([]byte, 1)
	for {
		if _, err := io.ReadFull(body, one); err != nil {
			return
		}
		time.Sleep(time.Second)
	}
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var trusting = &tls.Config{InsecureSkipVerify: true, ServerName: "localhost"}

func terms(protocol string) *tls.Config {
	config := trusting.Clone()
	config.NextProtos = []string{protocol}
	return config
}

func openClear(address, path string, _ int64) (answer, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return askH1(conn, path)
}

func openTLS(address, path string, _ int64) (answer, error) {
	conn, err := tls.Dial("tcp", address, terms("http/1.1"))
	if err != nil {
		return nil, err
	}
	return askH1(conn, path)
}

// Asks over HTTP/1.1; the answer must have a length.
func askH1(conn net.Conn, path string) (answer, error) {
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path); err != nil {
		return nil, err
	}
	reader := bufio.NewReader(conn)
	length := int64(-1)
	for {
		line, err := reader.ReadString('\n')
		if err != nil {
			return nil, err
		}
		if line == "\r\n" {
			break
		}
		_, _ = fmt.Sscanf(line, "content-length: %d", &length)
		_, _ = fmt.Sscanf(line, "Content-Length: %d", &length)
	}
	if length < 0 {
		return nil, fmt.Errorf("an answer without a length")
	}
	return io.LimitReader(reader, length), nil
}

var transports struct {
	sync.Mutex
	all  []*quic.Transport
	next int
}

func transport() (*quic.Transport, error) {
	transports.Lock()
	defer transports.Unlock()
	if len(transports.all) < ports {
		socket, err := net.ListenUDP("udp", nil)
		if err != nil {
			return nil, err
		}
		_ = socket.SetReadBuffer(4 << 20)
		transports.all = append(transports.all, &quic.Transport{Conn: socket})
	}
	transports.next++
	return transports.all[transports.next%len(transports.all)], nil
}

func openH3(address, path string, windowBytes int64) (answer, error) {
	over, err := transport()
	if err != nil {
		return nil, err
	}
	target, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return nil, err
	}
	config := &quic.Config{
		InitialStreamReceiveWindow:     uint64(windowBytes),
		MaxStreamReceiveWindow:         uint64(windowBytes),
		InitialConnectionReceiveWindow: uint64(windowBytes) * 2,
		MaxConnectionReceiveWindow:     uint64(windowBytes) * 2,
		MaxIdleTimeout:                 time.Hour,
	}
	conn, err := over.Dial(context.Background(), target, terms("h3"), config)
	if err != nil {
		return nil, err
	}
	client := (&http3.Transport{}).NewClientConn(conn)
	return askH3(client, path)
}

// Command quic-go asks a server for HTTP/3 in the ways a patient and an awkward client do.
//
//	quic-go HTTP_URL HTTPS_URL
//
// It prints a line for each case, its name, a tab, and what was wrong, or nothing. What files should be
// is what HTTP/1.1 gives at the first address; the second is asked over QUIC. Certificates are not looked
// at: other judges do that.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/quic-go/qlog"
	"github.com/quic-go/quic-go/qlogwriter"
)

const (
	caseTime    = time.Minute
	uploadBytes = 100_000_000
	// Two keys' worth of packets and more: quic-go changes keys after its first hundred packets.
	large = "/download/noise-4MiB.bin"
)

var paths = []string{"/", "/picture.png", "/download/primes.txt", large}

// A judge knows where the server is and what its files are.
type judge struct {
	host    string
	address *net.UDPAddr
	files   map[string][]byte
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: quic-go HTTP_URL HTTPS_URL")
		os.Exit(2)
	}
	j, err := newJudge(os.Args[1], os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for _, c := range []struct {
		name string
		run  func(context.Context, *judge) error
	}{
		{"fetch", fetch},
		{"head and range", headAndRange},
		{"upload 100 MB", upload},
		{"upload without a size", uploadInPieces},
		{"60 streams", sixtyStreams},
		{"tiny windows", tinyWindows},
		{"resets", resets},
		{"migration", migration},
		{"port changes beneath", rebinding},
		{"key update", keyUpdate},
		{"resumption", resumption},
		{"no 0-RTT", noEarlyData},
	} {
		fmt.Printf("%s\t%s\n", c.name, wrong(c.run, j))
	}
}

func newJudge(clear, secure string) (*judge, error) {
	at, err := url.Parse(secure)
	if err != nil {
		return nil, err
	}
	address, err := net.ResolveUDPAddr("udp4", at.Host)
	if err != nil {
		return nil, err
	}
	j := &judge{host: "localhost:" + at.Port(), address: address, files: map[string][]byte{}}
	for _, path := range paths {
		answer, err := http.Get(clear + path)
		if err != nil {
			return nil, err
		}
		if j.files[path], err = io.ReadAll(answer.Body); err != nil {
			return nil, err
		}
		answer.Body.Close()
		if answer.StatusCode != 200 {
			return nil, fmt.Errorf("%s%s is %d", clear, path, answer.StatusCode)
		}
	}
	return j, nil
}

// wrong runs a case and says in one line what was wrong.
func wrong(run func(context.Context, *judge) error, j *judge) string {
	ctx, cancel := context.WithTimeout(context.Background(), caseTime)
	defer cancel()
	if err := run(ctx, j); err != nil {
		return strings.Join(strings.Fields(err.Error()), " ")
	}
	return ""
}

// A client is one connection.
type client struct {
	judge  *judge
	socket *quic.Transport
	conn   *quic.Conn
	http   *http3.ClientConn
}

// dial connects from a port of its own; either config may be nil.
func (j *judge) dial(ctx context.Context, secure *tls.Config, config *quic.Config) (*client, error) {
	socket, err := newSocket()
	if err != nil {
		return nil, err
	}
	return j.dialFrom(ctx, socket, secure, config)
}

func (j *judge) dialFrom(ctx context.Context, socket *quic.Transport, secure *tls.Config, config *quic.Config) (*client, error) {
	if secure == nil {
		secure = &tls.Config{}
	}
	secure.InsecureSkipVerify = true
	secure.ServerName = "localhost"
	secure.NextProtos = []string{http3.NextProtoH3}
	conn, err := socket.Dial(ctx, j.address, secure, config)
	if err != nil {
		return nil, errors.Join(err, socket.Close(), socket.Conn.Close())
	}
	return &client{j, socket, conn, (&http3.Transport{}).NewClientConn(conn)}, nil
}

func newSocket() (*quic.Transport, error) {
	socket, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	return &quic.Transport{Conn: socket}, nil
}

func (c *client) close() {
	c.conn.CloseWithError(0x100, "")
	c.socket.Close()
	c.socket.Conn.Close()
}

func (c *client) ask(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, "https://"+c.judge.host+path, body)
	if err != nil {
		return nil, err
	}
	return c.http.RoundTrip(request)
}

// get fetches a file, which must be what it is over HTTP/1.1.
func (c *client) get(ctx context.Context, path string) error {
	answer, err := c.ask(ctx, "GET", path, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return fmt.Errorf("%s: after %d bytes: %w", path, len(body), err)
	}
	if answer.StatusCode != 200 || !bytes.Equal(body, c.judge.files[path]) {
		return fmt.Errorf("%s came as %d, %d bytes", path, answer.StatusCode, len(body))
	}
	return nil
}

func fetch(ctx context.Context, j *judge) error {
	c, err := j.dial(ctx, nil, nil)
	if err != nil {
		return err
	}
	defer c.close()
	for range 3 {
		for _, path := range paths {
			if err := c.get(ctx, path); err != nil {
				return err
			}
		}
	}
	return nil
}

func headAndRange(ctx context.Context, j *judge) error {
	c, err := j.dial(ctx, nil, nil)
	if err != nil {
		return err
	}
	defer c.close()
	for _, path := range paths {
		answer, err := c.ask(ctx, "HEAD", path, nil)
		if err != nil {
			return err
		}
		if answer.ContentLength != int64(len(j.files[path])) {
			return fmt.Errorf("HEAD %s: content-length %d", path, answer.ContentLength)
		}
		answer.Body.Close()
	}
	request, err := http.NewRequestWithContext(ctx, "GET", "https://"+j.host+large, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Range", "bytes=1000000-1999999")
	answer, err := c.http.RoundTrip(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode != 206 || !bytes.Equal(body, j.files[large][1_000_000:2_000_000]) {
		return fmt.Errorf("a range came as %d, %d bytes", answer.StatusCode, len(body))
	}
	return nil
}

// send uploads a body; the program that takes it says how long it was, and its sum.
func (c *client) send(ctx context.Context, body io.Reader, size int64) error {
	sum := sha256.New()
	request, err := http.NewRequestWithContext(ctx, "POST", "https://"+c.judge.host+"/count",
		io.TeeReader(io.LimitReader(body, uploadBytes), sum))
	if err != nil {
		return err
	}
	request.ContentLength = size
	answer, err := c.http.RoundTrip(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	wanted := fmt.Sprintf("%d %x", uploadBytes, sum.Sum(nil))
	if answer.StatusCode != 200 || strings.TrimSpace(string(said)) != wanted {
		return fmt.Errorf("the answer was %d, %q, not %q", answer.StatusCode, said, wanted)
	}
	return nil
}

// A pattern is an endless body without a short period.
type pattern uint64

func (p *pattern) Read(into []byte) (int, error) {
	for at := range into {
		*p = *p*6364136223846793005 + 1442695040888963407
		into[at] = byte(*p >> 56)
	}
	return len(into), nil
}

func upload(ctx context.Context, j *judge) error {
	c, err := j.dial(ctx, nil, nil)
	if err != nil {
		return err
	}
	defer c.close()
	return c.send(ctx, new(pattern), uploadBytes)
}

func uploadInPieces(ctx context.Context, j *judge) error {
	c, err := j.dial(ctx, nil, nil)
	if err != nil {
		return err
	}
	defer c.close()
	return c.send(ctx, new(pattern), -1)
}

func sixtyStreams(ctx context.Context, j *judge) error {
	c, err := j.dial(ctx, nil, nil)
	if err != nil {
		return err
	}
	defer c.close()
	ended := make(chan error, 60)
	for number := range 60 {
		go func() { ended <- c.get(ctx, paths[number%len(paths)]) }()
	}
	var all error
	for range 60 {
		all = errors.Join(all, <-ended)
	}
	return all
}

func tinyWindows(ctx context.Context, j *judge) error {
	c, err := j.dial(ctx, nil, &quic.Config{
		InitialStreamReceiveWindow:     700,
		MaxStreamReceiveWindow:         700,
		InitialConnectionReceiveWindow: 1500,
		MaxConnectionReceiveWindow:     1500,
	})
	if err != nil {
		return err
	}
	defer c.close()
	return errors.Join(c.get(ctx, "/"), c.get(ctx, "/picture.png"), c.get(ctx, "/download/primes.txt"))
}

// resets takes back answers and bodies; requests after them are answered.
func resets(ctx context.Context, j *judge) error {
	c, err := j.dial(ctx, nil, nil)
	if err != nil {
		return err
	}
	defer c.close()
	for range 30 {
		answer, err := c.ask(ctx, "GET", large, nil)
		if err != nil {
			return err
		}
		answer.Body.Close()
		once, cancel := context.WithCancel(ctx)
		reader, writer := io.Pipe()
		go func() {
			writer.Write(make([]byte, 10_000))
			cancel()
		}()
		if answer, err := c.ask(once, "POST", "/count", reader); err == nil {
			answer.Body.Close()
		}
		reader.Close()
		if err := c.get(ctx, "/picture.png"); err != nil {
			return err
		}
	}
	return nil
}

// migration goes on from other ports: a path is probed, then used, between requests and amid one.
func migration(ctx context.Context, j *judge) error {
	c, err := j.dial(ctx, nil, nil)
	if err != nil {
		return err
	}
	defer c.close()
	// quic-go takes four connection ids and keeps those of paths it has left: three ports more are all.
	for number := range 3 {
		if err := c.get(ctx, "/picture.png"); err != nil {
			return err
		}
		ended := make(chan error, 1)
		go func() { ended <- c.get(ctx, large) }()
		socket, err := newSocket()
		if err != nil {
			return err
		}
		defer socket.Conn.Close()
		defer socket.Close()
		path, err := c.conn.AddPath(socket)
		if err != nil {
			return err
		}
		if err := path.Probe(ctx); err != nil {
			return fmt.Errorf("probing path %d: %w", number+1, err)
		}
		if err := path.Switch(); err != nil {
			return err
		}
		if err := <-ended; err != nil {
			return err
		}
	}
	return nil
}

// A movable socket changes its port without telling anybody, as an address translator does.
type movable struct {
	net.PacketConn
	port atomic.Pointer[net.UDPConn]
}

func (m *movable) ReadFrom(into []byte) (int, net.Addr, error) {
	for {
		from := m.port.Load()
		count, address, err := from.ReadFrom(into)
		if err == nil || m.port.Load() == from {
			return count, address, err
		}
	}
}

func (m *movable) WriteTo(data []byte, to net.Addr) (int, error) {
	return m.port.Load().WriteTo(data, to)
}

func (m *movable) SetReadDeadline(at time.Time) error {
	return m.port.Load().SetReadDeadline(at)
}

func (m *movable) move() error {
	next, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return err
	}
	return m.port.Swap(next).Close()
}

func rebinding(ctx context.Context, j *judge) error {
	first, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return err
	}
	socket := &movable{PacketConn: first}
	socket.port.Store(first)
	c, err := j.dialFrom(ctx, &quic.Transport{Conn: socket}, nil, nil)
	if err != nil {
		return err
	}
	defer func() { socket.port.Load().Close() }()
	defer c.close()
	for range 4 {
		if err := c.get(ctx, large); err != nil {
			return err
		}
		if err := socket.move(); err != nil {
			return err
		}
	}
	return c.get(ctx, large)
}

// A keyCount counts the keys that both sides have changed.
type keyCount struct{ own, peers atomic.Int64 }

func (k *keyCount) AddProducer() qlogwriter.Recorder   { return k }
func (k *keyCount) SupportsSchemas(schema string) bool { return schema == qlog.EventSchema }
func (k *keyCount) Close() error                       { return nil }
func (k *keyCount) RecordEvent(event qlogwriter.Event) {
	update, is := event.(qlog.KeyUpdated)
	switch {
	case is && update.KeyPhase > 0 && update.KeyType == qlog.KeyTypeClient1RTT:
		k.own.Add(1)
	case is && update.KeyPhase > 0 && update.KeyType == qlog.KeyTypeServer1RTT:
		k.peers.Add(1)
	}
}

// keyUpdate fetches so much that quic-go changes its keys, and the server has to follow.
func keyUpdate(ctx context.Context, j *judge) error {
	keys := new(keyCount)
	c, err := j.dial(ctx, nil, &quic.Config{
		Tracer: func(context.Context, bool, quic.ConnectionID) qlogwriter.Trace { return keys },
	})
	if err != nil {
		return err
	}
	defer c.close()
	for keys.own.Load() == 0 || keys.peers.Load() == 0 {
		if err := c.get(ctx, large); err != nil {
			return fmt.Errorf("%w (%d and %d keys changed)", err, keys.own.Load(), keys.peers.Load())
		}
	}
	return c.get(ctx, large)
}

// A ticketCache tells when it holds a ticket.
type ticketCache struct {
	tls.ClientSessionCache
	came chan struct{}
}

func newTicketCache() ticketCache {
	return ticketCache{tls.NewLRUClientSessionCache(4), make(chan struct{}, 100)}
}

func (t ticketCache) Put(key string, state *tls.ClientSessionState) {
	t.ClientSessionCache.Put(key, state)
	t.came <- struct{}{}
}

// resumed makes two connections, the second with a ticket of the first, and returns the second.
func resumed(ctx context.Context, j *judge, config *quic.Config) (*client, error) {
	cache := newTicketCache()
	first, err := j.dial(ctx, &tls.Config{ClientSessionCache: cache}, config)
	if err != nil {
		return nil, err
	}
	defer first.close()
	if err := first.get(ctx, "/"); err != nil {
		return nil, err
	}
	select {
	case <-cache.came:
	case <-ctx.Done():
		return nil, errors.New("no ticket came")
	}
	return j.dial(ctx, &tls.Config{ClientSessionCache: cache}, config)
}

func resumption(ctx context.Context, j *judge) error {
	c, err := resumed(ctx, j, nil)
	if err != nil {
		return err
	}
	defer c.close()
	if err := c.get(ctx, "/picture.png"); err != nil {
		return err
	}
	if !c.conn.ConnectionState().TLS.DidResume {
		return errors.New("the second connection was not resumed")
	}
	return nil
}

func noEarlyData(ctx context.Context, j *judge) error {
	c, err := resumed(ctx, j, &quic.Config{Allow0RTT: true})
	if err != nil {
		return err
	}
	defer c.close()
	if err := c.get(ctx, "/"); err != nil {
		return err
	}
	state := c.conn.ConnectionState()
	if state.Used0RTT {
		return errors.New("0-RTT was taken")
	}
	if !state.TLS.DidResume {
		return errors.New("the second connection was not resumed")
	}
	return nil
}

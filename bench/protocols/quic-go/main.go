// Asks for one file over HTTP/3 again and again, with the clients of quic-go.
//
//	quic-go -c CONNECTIONS -m STREAMS -D SECONDS URL
//
// It prints how many requests were answered with 200 and a whole body; any other ends it.
package main

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go/http3"
)

func main() {
	connections := flag.Int("c", 1, "connections")
	streams := flag.Int("m", 1, "requests at once on each connection")
	seconds := flag.Float64("D", 1, "for how long, in seconds")
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	url := flag.Arg(0)
	var succeeded atomic.Int64
	var all sync.WaitGroup
	end := time.Now().Add(time.Duration(*seconds * float64(time.Second)))
	for range *connections {
		// Its connection is opened by the first request.
		transport := &http3.Transport{
			TLSClientConfig:    &tls.Config{InsecureSkipVerify: true},
			DisableCompression: true,
		}
		for range *streams {
			all.Go(func() {
				for time.Now().Before(end) {
					if err := get(transport, url); err != nil {
						fmt.Fprintln(os.Stderr, err)
						os.Exit(1)
					}
					succeeded.Add(1)
				}
			})
		}
	}
	all.Wait()
	fmt.Println(succeeded.Load(), "succeeded")
}

func get(transport *http3.Transport, url string) error {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	length, err := io.Copy(io.Discard, answer.Body)
	if err == nil && (answer.StatusCode != http.StatusOK || length != answer.ContentLength) {
		err = fmt.Errorf("%d with %d of %d bytes", answer.StatusCode, length, answer.ContentLength)
	}
	return err
}

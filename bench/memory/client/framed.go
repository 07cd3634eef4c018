package main

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"

	"github.com/quic-go/quic-go/http3"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

func askH3(client *http3.ClientConn, path string) (answer, error) {
	request, err := http.NewRequest("GET", "https://localhost"+path, nil)
	if err != nil {
		return nil, err
	}
	got, err := client.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if got.StatusCode != 200 {
		return nil, fmt.Errorf("answer %s", got.Status)
	}
	return got.Body, nil
}

// An answer over HTTP/2. Windows open only as it is read.
type streamed struct {
	conn   *tls.Conn
	framer *http2.Framer
	rest   []byte
	owed   uint32
	isOver bool
}

func openH2(address, path string, windowBytes int64) (answer, error) {
	conn, err := tls.Dial("tcp", address, terms("h2"))
	if err != nil {
		return nil, err
	}
	var fields bytes.Buffer
	encoder := hpack.NewEncoder(&fields)
	for _, field := range [][2]string{
		{":method", "GET"}, {":scheme", "https"}, {":authority", "localhost"}, {":path", path},
	} {
		if err := encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}); err != nil {
			return nil, err
		}
	}
	var out bytes.Buffer
	out.WriteString(http2.ClientPreface)
	opening := http2.NewFramer(&out, nil)
	size := http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(windowBytes)}
	if err := opening.WriteSettings(size); err != nil {
		return nil, err
	}
	if more := windowBytes - 65535; more > 0 {
		if err := opening.WriteWindowUpdate(0, uint32(more)); err != nil {
			return nil, err
		}
	}
	head := http2.HeadersFrameParam{
		StreamID: 1, BlockFragment: fields.Bytes(), EndStream: true, EndHeaders: true,
	}
	if err := opening.WriteHeaders(head); err != nil {
		return nil, err
	}
	if _, err := conn.Write(out.Bytes()); err != nil {
		return nil, err
	}
	return &streamed{conn: conn, framer: http2.NewFramer(conn, conn)}, nil
}

func (body *streamed) Read(into []byte) (int, error) {
	for len(body.rest) == 0 {
		if body.isOver {
			return 0, io.EOF
		}
		frame, err := body.framer.ReadFrame()
		if err != nil {
			return 0, err
		}
		switch frame := frame.(type) {
		case *http2.DataFrame:
			body.rest = frame.Data()
			body.isOver = frame.StreamEnded()
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				err = body.framer.WriteSettingsAck()
			}
		case *http2.GoAwayFrame:
			err = fmt.Errorf("the server leaves: %v", frame.ErrCode)
		case *http2.RSTStreamFrame:
			err = fmt.Errorf("the stream was reset: %v", frame.ErrCode)
		}
		if err != nil {
			return 0, err
		}
	}
	count := copy(into, body.rest)
	body.rest = body.rest[count:]
	body.owed += uint32(count)
	// A reader in no hurry gives back each byte as it takes it.
	if len(into) == 1 || body.owed >= 256<<10 {
		if err := body.framer.WriteWindowUpdate(0, body.owed); err != nil {
			return count, err
		}
		if err := body.framer.WriteWindowUpdate(1, body.owed); err != nil {
			return count, err
		}
		body.owed = 0
	}
	return count, nil
}

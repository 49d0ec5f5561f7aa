// Calls Predict over TLS in each of several ways, with the TLS and HTTP/2 of Go alone, and prints how each call ended.
//
// usage: go run tls-client.go HOST:PORT CERTIFICATE
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
)

func call(address string, config *tls.Config) string {
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	// A gRPC message: not compressed, 3 bytes, target_model = "m".
	message := bytes.NewReader([]byte{0, 0, 0, 0, 3, 10, 1, 'm'})
	request, _ := http.NewRequest("POST", "https://"+address+"/prediction.v1.PredictionService/Predict", message)
	request.Header.Set("Content-Type", "application/grpc")
	request.Header.Set("TE", "trailers")
	response, err := transport.RoundTrip(request)
	if err != nil {
		return "refused"
	}
	defer response.Body.Close()
	io.Copy(io.Discard, response.Body)
	return response.Proto + " " + response.Trailer.Get("Grpc-Status")
}

func main() {
	certificate, err := os.ReadFile(os.Args[2])
	if err != nil {
		panic(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certificate)
	print := func(name string, config tls.Config) {
		config.RootCAs, config.NextProtos = roots, []string{"h2"}
		fmt.Println(name+":", call(os.Args[1], &config))
	}
	print("TLS 1.3", tls.Config{MinVersion: tls.VersionTLS13})
	for _, curve := range []tls.CurveID{tls.X25519, tls.CurveP256, tls.CurveP384, tls.CurveP521} {
		print(curve.String(), tls.Config{CurvePreferences: []tls.CurveID{curve}})
	}
	for _, suite := range tls.CipherSuites() {
		if suite.SupportedVersions[0] < tls.VersionTLS13 {
			print(suite.Name, tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{suite.ID}})
		}
	}
}

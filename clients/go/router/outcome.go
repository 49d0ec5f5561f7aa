// Declares what became of events, and decides whether and when a failed batch is sent again (retry).

package router

import (
	"math/rand"
	"regexp"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

const (
	maxReasons = 100
	retryDelay = time.Second
	// The longest pause before a retry, even if the answer asks for a longer one.
	longestRetryDelay = 5 * time.Minute
	// The trailer with the milliseconds after which the client should try again.
	pushbackKey = "grpc-retry-pushback-ms"
)

// Reported counts what became of the events.
type Reported struct {
	// Accepted events are durable in the service.
	Accepted int64
	// Refused events were impossible or could not be encoded, or the service had them already.
	Refused int64
	// Dropped events were never confirmed by the service: it can never take them, too many waited, or the router was closed.
	Dropped int64
	// Reasons of the last refused and dropped events, at most 100.
	Reasons []string
}

func (r *Reported) addReason(reason string) {
	r.Reasons = append(r.Reasons, reason)
	if surplus := len(r.Reasons) - maxReasons; surplus > 0 {
		r.Reasons = append([]string(nil), r.Reasons[surplus:]...)
	}
}

// The code alone does not show that a batch is too large: rate limits answer with ResourceExhausted too, and grpc-go returns it for
// a stream reset with ENHANCE_YOUR_CALM. gRPC has no code for the 413 of a proxy.
var (
	tooLargeForTrivet = regexp.MustCompile(`it must be at most \d+ bytes`)
	// 413 as grpc-go 1.33 and as later ones describe it, and as Envoy writes it in an answer with status 200.
	tooLargeForProxy = regexp.MustCompile(`^Request Entity Too Large: HTTP status code 413;` +
		`|^unexpected HTTP status code received from server: 413 ` +
		`|(?i)^(payload|content|request entity) too large$`)
)

// isFinal returns true if the service never takes the batch: it cannot read an event, or the batch is too large. Unimplemented is
// not final, because grpc-go returns it for the 404 of a proxy without a route.
func isFinal(err error) bool {
	text := status.Convert(err).Message()
	switch status.Code(err) {
	case codes.InvalidArgument:
		return true
	case codes.ResourceExhausted:
		return tooLargeForTrivet.MatchString(text)
	case codes.Unknown:
		return tooLargeForProxy.MatchString(text)
	}
	return false
}

// retryIn is the time to the next attempt: what the service asks for, but at least a second. It is random, so that gateways do not
// all come back at once.
func retryIn(trailer metadata.MD) time.Duration {
	delay := retryDelay
	for _, value := range trailer.Get(pushbackKey) {
		if millis, err := strconv.ParseInt(value, 10, 32); err == nil && time.Duration(millis)*time.Millisecond > delay {
			delay = time.Duration(millis) * time.Millisecond
		}
	}
	if delay > longestRetryDelay {
		delay = longestRetryDelay
	}
	return delay + time.Duration(rand.Int63n(int64(delay/4)))
}

package router

import (
	"math/rand"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

const (
	maxReasons = 100
	retryDelay = time.Second
	// The longest pause, even if the answer asks for a longer one.
	longestRetryDelay = 5 * time.Minute
)

// Reported says what became of the events.
type Reported struct {
	// Accepted events are durable in the service.
	Accepted int64
	// Refused events could not be true or not be encoded, or the service had them already.
	Refused int64
	// Dropped events were never confirmed by the service: it can never take their batch, too many waited, or the router was closed.
	Dropped int64
	// Reasons of the last refused events and dropped batches, at most 100.
	Reasons []string
}

func (r *Reported) addReason(reason string) {
	r.Reasons = append(r.Reasons, reason)
	if surplus := len(r.Reasons) - maxReasons; surplus > 0 {
		r.Reasons = append([]string(nil), r.Reasons[surplus:]...)
	}
}

// isFinal says that no later attempt can succeed: the service cannot read the batch. Unimplemented is not final:
// grpc-go makes it of the 404 of a proxy without a route.
func isFinal(err error) bool {
	return status.Code(err) == codes.InvalidArgument
}

// retryIn is the time to the next attempt: what the service asks for, but a second at least. Gateways do not come back all at once.
func retryIn(trailer metadata.MD) time.Duration {
	delay := retryDelay
	for _, value := range trailer.Get("grpc-retry-pushback-ms") {
		if millis, err := strconv.ParseInt(value, 10, 32); err == nil && time.Duration(millis)*time.Millisecond > delay {
			delay = time.Duration(millis) * time.Millisecond
		}
	}
	if delay > longestRetryDelay {
		delay = longestRetryDelay
	}
	return delay + time.Duration(rand.Int63n(int64(delay/4)))
}

// Sets how the connection of a router detects a dead service (keepalive), and how soon it reconnects.

package router

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/keepalive"
)

// DialOptions returns what the connection of a router needs in addition to its credentials.
func DialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		// A dead connection is replaced within 15 s. TCP alone may take a quarter of an hour to detect it.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time:                10 * time.Second,
			Timeout:             5 * time.Second,
			PermitWithoutStream: true,
		}),
		// A service that is available again is reached within about a second. grpc-go alone waits up to two minutes between attempts.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: time.Second, Multiplier: 1, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: 5 * time.Second,
		}),
	}
}

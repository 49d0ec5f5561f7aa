// Sets how the connection of a router notices silence, and how soon it connects again.

package router

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/keepalive"
)

// DialOptions are what the connection of a router needs beside its credentials.
func DialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		// A connection that fell silent is replaced within 15 s. TCP alone may take a quarter of an hour to find out.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time:                10 * time.Second,
			Timeout:             5 * time.Second,
			PermitWithoutStream: true,
		}),
		// A service that comes back is found within about a second. grpc-go alone waits up to two minutes between its attempts.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: time.Second, Multiplier: 1, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: 5 * time.Second,
		}),
	}
}

package router

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	observationv1 "trivet/gen/observation/v1"
)

// observations is a service that takes reports as a test wants.
type observations struct {
	observationv1.UnimplementedObservationServiceServer
	take func(ctx context.Context, events []*observationv1.Event) (*observationv1.ReportResponse, error)

	mu      sync.Mutex
	batches []int
}

func (o *observations) ReportBatch(ctx context.Context, request *observationv1.ReportBatchRequest) (*observationv1.ReportResponse, error) {
	o.mu.Lock()
	o.batches = append(o.batches, len(request.Events))
	o.mu.Unlock()
	return o.take(ctx, request.Events)
}

func takeAll(_ context.Context, events []*observationv1.Event) (*observationv1.ReportResponse, error) {
	return &observationv1.ReportResponse{Accepted: int64(len(events))}, nil
}

// startReports returns a reporter whose service takes reports with take.
func startReports(t *testing.T, service *observations, onError func(error)) *reporter {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	observationv1.RegisterObservationServiceServer(server, service)
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	return startReporter(connect(t, listener.Addr().String()), onError)
}

func TestFullBatchesFollowEachOtherWithoutAPause(t *testing.T) {
	reporter := startReports(t, &observations{take: takeAll}, nil)
	start := time.Now()
	for i := 0; i < maxWaiting; i++ {
		reporter.firstToken("r", 1)
	}
	for reporter.stats().Accepted < maxWaiting {
		time.Sleep(time.Millisecond)
	}
	// With a pause after each batch it takes at least as long as 19 of them.
	if took := time.Since(start); took > maxWaiting/maxBatch*sendEvery/2 {
		t.Errorf("took %v", took)
	}
}

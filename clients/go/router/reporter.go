package router

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	observationv1 "trivet/gen/observation/v1"
	predictionv1 "trivet/gen/prediction/v1"
)

const (
	// Events that wait while the service is away. Beyond it, events are dropped and counted: routing never waits.
	queueLength = 10_000
	retryDelay  = time.Second
	closeWithin = 5 * time.Second
)

// Reported says what became of the events.
type Reported struct {
	// Accepted events are durable in the service.
	Accepted int64
	// Refused events could not be true. The service names the reasons.
	Refused int64
	// Dropped events were never sent: the service was away for too long.
	Dropped int64
	// Reasons of the first refused events.
	Reasons []string
}

// reporter sends events in one stream that stays open, and opens another one when it ends.
type reporter struct {
	client observationv1.ObservationServiceClient
	events chan *observationv1.Event
	cancel context.CancelFunc
	done   chan struct{}

	// Guards the channel against an event after its end.
	mu      sync.Mutex
	closed  bool
	dropped int64

	// Written by run, read once it is done.
	reported Reported
	err      error
}

func startReporter(connection grpc.ClientConnInterface) *reporter {
	ctx, cancel := context.WithCancel(context.Background())
	r := &reporter{
		client: observationv1.NewObservationServiceClient(connection),
		events: make(chan *observationv1.Event, queueLength),
		cancel: cancel,
		done:   make(chan struct{}),
	}
	go r.run(ctx)
	return r
}

func (r *reporter) run(ctx context.Context) {
	defer close(r.done)
	var unsent *observationv1.Event
	for {
		var ended bool
		unsent, ended = r.runStream(ctx, unsent)
		if ended {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(retryDelay):
		}
	}
}

// runStream returns the event that a broken stream did not take, and whether all events were sent.
func (r *reporter) runStream(ctx context.Context, unsent *observationv1.Event) (*observationv1.Event, bool) {
	stream, err := r.client.Report(ctx)
	if err != nil {
		r.err = err
		return unsent, ctx.Err() != nil
	}
	if unsent != nil && stream.Send(unsent) != nil {
		r.settle(stream)
		return unsent, false
	}
	for event := range r.events {
		if stream.Send(event) != nil {
			r.settle(stream)
			return event, false
		}
	}
	r.settle(stream)
	return nil, true
}

// settle reads the one answer of a stream. The service answers early when it stops.
func (r *reporter) settle(stream observationv1.ObservationService_ReportClient) {
	answer, err := stream.CloseAndRecv()
	r.err = err
	if err != nil {
		return
	}
	r.reported.Accepted += answer.GetAccepted()
	r.reported.Refused += answer.GetRefused()
	for _, refusal := range answer.GetRefusals() {
		r.reported.Reasons = append(r.reported.Reasons, refusal.GetReason())
	}
}

func (r *reporter) close() (Reported, error) {
	r.stop()
	timer := time.AfterFunc(closeWithin, r.cancel)
	<-r.done
	timer.Stop()
	r.cancel()
	reported := r.reported
	reported.Dropped = r.dropped + int64(len(r.events))
	return reported, r.err
}

func (r *reporter) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.closed = true
		close(r.events)
	}
}

func (r *reporter) send(event *observationv1.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || len(r.events) == cap(r.events) {
		r.dropped++
		return
	}
	r.events <- event
}

func (r *reporter) dispatched(id, model string, input *predictionv1.PredictInput) {
	r.send(&observationv1.Event{Event: &observationv1.Event_Dispatched{Dispatched: &observationv1.Dispatched{
		RequestId: id, TargetModel: model, Input: input, At: timestamppb.Now(),
	}}})
}

func (r *reporter) firstToken(id string, ttftMillis float64) {
	r.send(&observationv1.Event{Event: &observationv1.Event_FirstToken{FirstToken: &observationv1.FirstToken{
		RequestId: id, TtftMillis: ttftMillis, At: timestamppb.Now(),
	}}})
}

func (r *reporter) finished(id string, elapsedMillis float64, outputTokens int32) {
	finished := &observationv1.Finished{RequestId: id, OutputTokens: outputTokens, At: timestamppb.Now()}
	if outputTokens > 1 {
		tpot := elapsedMillis / float64(outputTokens-1)
		finished.TpotMillis = &tpot
	}
	r.send(&observationv1.Event{Event: &observationv1.Event_Finished{Finished: finished}})
}

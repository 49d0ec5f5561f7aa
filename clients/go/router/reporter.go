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
	maxWaiting = 10_000
	maxBatch   = 500
	// Events of this time share a batch.
	sendEvery    = 100 * time.Millisecond
	retryDelay   = time.Second
	reportWithin = 5 * time.Second
	closeWithin  = 5 * time.Second
	maxReasons   = 100
)

// Reported says what became of the events.
type Reported struct {
	// Accepted events are durable in the service.
	Accepted int64
	// Refused events could not be true, or the service had them already.
	Refused int64
	// Dropped events were never confirmed by the service: too many waited, or the router was closed.
	Dropped int64
	// Reasons of the last refused events, at most 100.
	Reasons []string
}

// Stats says how reporting goes, while it goes.
type Stats struct {
	Reported
	// Waiting events are not confirmed by the service yet.
	Waiting int
	// Err is why the last attempt to send events failed; nil once one succeeds.
	Err error
}

// reporter keeps events until the service has taken them: it sends them in batches, and a batch without an answer again.
type reporter struct {
	client  observationv1.ObservationServiceClient
	onError func(error)
	cancel  context.CancelFunc
	closing chan struct{}
	wake    chan struct{}
	done    chan struct{}

	mu       sync.Mutex
	waiting  []*observationv1.Event
	reported Reported
	err      error
}

func startReporter(connection grpc.ClientConnInterface, onError func(error)) *reporter {
	ctx, cancel := context.WithCancel(context.Background())
	r := &reporter{
		client:  observationv1.NewObservationServiceClient(connection),
		onError: onError,
		cancel:  cancel,
		closing: make(chan struct{}),
		wake:    make(chan struct{}, 1),
		done:    make(chan struct{}),
	}
	go r.run(ctx)
	return r
}

func (r *reporter) run(ctx context.Context) {
	defer close(r.done)
	for r.awaitEvents(ctx) {
		if delay := r.trySend(ctx); delay > 0 {
			r.pause(ctx, delay)
		}
	}
}

// pause ends early at the end of ctx, and when the router is closed during it.
func (r *reporter) pause(ctx context.Context, delay time.Duration) {
	closing := r.closing
	if r.isClosing() {
		closing = nil
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-closing:
	case <-timer.C:
	}
}

func (r *reporter) isClosing() bool {
	select {
	case <-r.closing:
		return true
	default:
		return false
	}
}

// awaitEvents returns false once the router is closed and nothing waits, or at the end of ctx.
func (r *reporter) awaitEvents(ctx context.Context) bool {
	for ctx.Err() == nil {
		closing := r.isClosing()
		if waiting := r.stats().Waiting; waiting > 0 || closing {
			return waiting > 0
		}
		select {
		case <-ctx.Done():
		case <-r.closing:
		case <-r.wake:
		}
	}
	return false
}

// trySend returns the time to the next batch: none after a full one, for more events wait. A batch without an answer waits too: the
// service refuses an event that it has taken already.
func (r *reporter) trySend(ctx context.Context) time.Duration {
	r.mu.Lock()
	batch := r.waiting
	r.mu.Unlock()
	if len(batch) > maxBatch {
		batch = batch[:maxBatch]
	}
	ctx, cancel := context.WithTimeout(ctx, reportWithin)
	defer cancel()
	answer, err := r.client.ReportBatch(ctx, &observationv1.ReportBatchRequest{Events: batch})
	r.settle(len(batch), answer, err)
	if err != nil {
		if r.onError != nil {
			r.onError(err)
		}
		return retryDelay
	}
	if len(batch) == maxBatch || r.isClosing() {
		return 0
	}
	return sendEvery
}

func (r *reporter) settle(events int, answer *observationv1.ReportResponse, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
	if err != nil {
		return
	}
	r.waiting = r.waiting[events:]
	r.reported.Accepted += answer.GetAccepted()
	r.reported.Refused += answer.GetRefused()
	for _, refusal := range answer.GetRefusals() {
		r.reported.Reasons = append(r.reported.Reasons, refusal.GetReason())
	}
	if surplus := len(r.reported.Reasons) - maxReasons; surplus > 0 {
		r.reported.Reasons = append([]string(nil), r.reported.Reasons[surplus:]...)
	}
}

func (r *reporter) stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Stats{Reported: r.reported, Waiting: len(r.waiting), Err: r.err}
}

func (r *reporter) close() (Reported, error) {
	r.startClosing()
	timer := time.AfterFunc(closeWithin, r.cancel)
	<-r.done
	timer.Stop()
	r.cancel()

	r.mu.Lock()
	defer r.mu.Unlock()
	r.reported.Dropped += int64(len(r.waiting))
	r.waiting = nil
	return r.reported, r.err
}

func (r *reporter) startClosing() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.isClosing() {
		close(r.closing)
	}
}

func (r *reporter) send(event *observationv1.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isClosing() || len(r.waiting) >= maxWaiting {
		r.reported.Dropped++
		return
	}
	r.waiting = append(r.waiting, event)
	select {
	case r.wake <- struct{}{}:
	default:
	}
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

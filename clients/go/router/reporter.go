// Sends events in batches from a goroutine, with retries; drops further events when too many wait. Routing never waits for the service.

package router

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	observationv1 "trivet/gen/observation/v1"
)

const (
	// The most events that wait while the service is unavailable. Further events are dropped and counted: routing never waits.
	maxWaiting = 10_000
	maxBatch   = 500
	// After a batch was refused and halved, each full batch that is taken raises the limit by this many events.
	batchGrowth = 10
	// Events of this span of time share a batch.
	sendEvery    = 100 * time.Millisecond
	reportWithin = 5 * time.Second
	closeWithin  = 5 * time.Second
)

// errGaveUp is the error of Close if its time is over and no earlier attempt had an error.
var errGaveUp = errors.New("the service did not answer before the time of Close was over")

// Stats is the state of reporting at a time.
type Stats struct {
	Reported
	// Waiting is the number of events that the service has not confirmed yet.
	Waiting int
	// Err is why the last attempt to send events failed; nil once one succeeds.
	Err error
}

// reporter keeps events until the service confirms them. It sends them in batches, and sends a batch without an answer again.
type reporter struct {
	client  observationv1.ObservationServiceClient
	onError func(error)
	cancel  context.CancelFunc
	closing chan struct{}
	wake    chan struct{}
	done    chan struct{}
	// Only the sending goroutine uses these.
	batchLimit     int
	takenSinceDrop bool
	calledAt       time.Time

	mu       sync.Mutex
	waiting  []*observationv1.Event
	reported Reported
	err      error
}

func startReporter(connection grpc.ClientConnInterface, onError func(error)) *reporter {
	ctx, cancel := context.WithCancel(context.Background())
	r := newReporter(connection, onError, cancel)
	go r.run(ctx)
	return r
}

func newReporter(connection grpc.ClientConnInterface, onError func(error), cancel context.CancelFunc) *reporter {
	return &reporter{
		client:     observationv1.NewObservationServiceClient(connection),
		onError:    onError,
		cancel:     cancel,
		closing:    make(chan struct{}),
		wake:       make(chan struct{}, 1),
		done:       make(chan struct{}),
		batchLimit: maxBatch,
	}
}

func (r *reporter) run(ctx context.Context) {
	defer close(r.done)
	for r.awaitEvents(ctx) {
		if delay := r.trySend(ctx); delay > 0 {
			r.pause(ctx, delay)
		}
	}
}

// pause ends early when ctx ends, or when the router is closed during it.
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

// awaitEvents returns false once the router is closed and no events wait, or when ctx ends.
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

// trySend returns the time to the next batch: 0 after a full one, because more events wait.
func (r *reporter) trySend(ctx context.Context) time.Duration {
	r.mu.Lock()
	batch := r.waiting
	r.mu.Unlock()
	if len(batch) > r.batchLimit {
		batch = batch[:r.batchLimit]
	}
	call, cancel := context.WithTimeout(ctx, reportWithin)
	defer cancel()
	var trailer metadata.MD
	answer, err := r.client.ReportBatch(call, &observationv1.ReportBatchRequest{Events: batch}, grpc.Trailer(&trailer))
	if err != nil && ctx.Err() != nil {
		r.giveUp()
		return 0
	}
	if err != nil {
		return r.settleFailure(len(batch), err, trailer)
	}
	r.settle(len(batch), answer)
	r.takenSinceDrop = true
	if isFull := r.growIfFull(len(batch)); isFull || r.isClosing() {
		return 0
	}
	return sendEvery
}

// growIfFull returns true if a taken batch was full, and raises the limit of the next.
func (r *reporter) growIfFull(events int) bool {
	if events < r.batchLimit {
		return false
	}
	r.batchLimit += batchGrowth
	if r.batchLimit > maxBatch {
		r.batchLimit = maxBatch
	}
	return true
}

func (r *reporter) settle(events int, answer *observationv1.ReportResponse) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = nil
	r.waiting = r.waiting[events:]
	r.reported.Accepted += answer.GetAccepted()
	r.reported.Refused += answer.GetRefused()
	for _, refusal := range answer.GetRefusals() {
		r.reported.addReason(refusal.GetReason())
	}
}

// settleFailure halves a batch that was refused for good, and drops an event that was refused alone. It pauses after a drop only if
// no batch was taken since the last drop, because a bad event must not slow down good ones. Any other batch is sent again, which is
// safe: the service refuses events that it already has.
func (r *reporter) settleFailure(events int, err error, trailer metadata.MD) time.Duration {
	isFinal := isFinal(err)
	if isFinal && events > 1 {
		r.batchLimit = events / 2
		return 0
	}
	r.keepReason(events, err, isFinal)
	r.callOnError(err)
	if !isFinal {
		return retryIn(trailer)
	}
	isPaused := !r.takenSinceDrop && !r.isClosing()
	r.takenSinceDrop = false
	if isPaused {
		return retryIn(trailer)
	}
	return 0
}

// callOnError calls OnError at most once a second.
func (r *reporter) callOnError(err error) {
	if r.onError == nil || time.Since(r.calledAt) < retryDelay {
		return
	}
	r.calledAt = time.Now()
	// In a new goroutine, because OnError may call Close, which waits for this one.
	go r.onError(err)
}

func (r *reporter) keepReason(events int, err error, isFinal bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
	if isFinal {
		r.waiting = r.waiting[events:]
		r.reported.Dropped += int64(events)
		r.reported.addReason(err.Error())
	}
}

// giveUp keeps an earlier reason, which says more than that the time of Close is over.
func (r *reporter) giveUp() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = errGaveUp
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
	_, err := proto.Marshal(event)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		// One invalid event would fail its whole batch.
		r.reported.Refused++
		r.reported.addReason(err.Error())
		return
	}
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

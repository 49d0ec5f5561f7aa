// Package router chooses a server for each request by predicted latency; without an answer in time, the server with the fewest
// requests (fallback).
//
// It needs only a connection: predictions start with a prior, and the service learns from the reported times.
package router

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"math"
	"sync"
	"time"

	"google.golang.org/grpc"

	predictionv1 "trivet/gen/prediction/v1"
)

// DefaultDeadline limits how long a request waits for its prediction.
const DefaultDeadline = 50 * time.Millisecond

// DefaultMaxMetricsAge is the age beyond which metrics no longer count.
const DefaultMaxMetricsAge = 5 * time.Second

// ErrNoCandidates is returned by Choose when there is no server to choose.
var ErrNoCandidates = errors.New("cannot choose a server: there are no candidates")

// errAllOmitted is the reason of a fallback when the service answered but omitted all candidates.
var errAllOmitted = errors.New(
	"the answer has no candidate: their numbers are negative, not finite or old, or the service has no fresh load of their servers")

// Options of a router.
type Options struct {
	// Model is the name under which the service learns, for example "qwen3-32b".
	Model string
	// Deadline limits one prediction; DefaultDeadline if 0.
	Deadline time.Duration
	// MaxMetricsAge is the age beyond which metrics do not count, and their server is not chosen unless all have older ones;
	// DefaultMaxMetricsAge if 0.
	MaxMetricsAge time.Duration
	// OnError is called with the error of a failed attempt to send reports, at most once a second. It is not called when half of the
	// reports are sent again at once. Each call runs in its own goroutine and may close the router.
	OnError func(error)
}

// Candidate is a server that can take the request.
type Candidate struct {
	// Address identifies the server.
	Address string
	// PodType is "" or "aggregate", "prefill" or "decode".
	PodType string
	// PrefixCacheScore is the share of the prompt that the server's prefix cache holds, 0 to 1.
	PrefixCacheScore float64
}

// Metrics are numbers that a server publishes about itself.
type Metrics struct {
	// Waiting is the length of the queue.
	Waiting int32
	// KVCacheUsage is the share of the KV cache in use, 0 to 1.
	KVCacheUsage float64
}

// canBeTrue returns false for impossible metrics, such as NaN from a division by 0.
func (m Metrics) canBeTrue() bool {
	return m.Waiting >= 0 && m.KVCacheUsage >= 0 && !math.IsInf(m.KVCacheUsage, 1)
}

// Router is safe for concurrent use.
type Router struct {
	client   predictionv1.PredictionServiceClient
	reporter *reporter
	options  Options

	mu   sync.Mutex
	load *load
}

// New returns a router on a connection that the caller closes after Close.
func New(connection grpc.ClientConnInterface, options Options) *Router {
	if options.Deadline == 0 {
		options.Deadline = DefaultDeadline
	}
	if options.MaxMetricsAge == 0 {
		options.MaxMetricsAge = DefaultMaxMetricsAge
	}
	return &Router{
		client:   predictionv1.NewPredictionServiceClient(connection),
		reporter: startReporter(connection, options.OnError),
		options:  options,
		load:     newLoad(options.MaxMetricsAge, time.Now),
	}
}

// SetMetrics takes the metrics just read from a server. Metrics that are negative or not finite are ignored.
func (r *Router) SetMetrics(address string, metrics Metrics) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.load.setMetrics(address, metrics)
}

// Choose requests predictions and returns the best candidate. It fails only without candidates. Without an answer within the
// deadline, it falls back: Choice.ModelVersion is empty and Choice.Err has the reason.
func (r *Router) Choose(ctx context.Context, promptTokens int32, candidates []Candidate) (*Choice, error) {
	if len(candidates) == 0 {
		return nil, ErrNoCandidates
	}
	r.mu.Lock()
	question := r.load.question(promptTokens, candidates)
	r.mu.Unlock()

	answer, err := r.predict(ctx, question)

	r.mu.Lock()
	defer r.mu.Unlock()
	index, version, err := r.best(candidates, answer, err)
	input := question[index]
	r.load.dispatched(candidates, index, promptTokens)
	choice := &Choice{Candidate: candidates[index], ModelVersion: version, Err: err, router: r, id: newID(), promptTokens: promptTokens}
	r.reporter.dispatched(choice.id, r.options.Model, input)
	return choice, nil
}

func (r *Router) predict(ctx context.Context, inputs []*predictionv1.PredictInput) (*predictionv1.PredictResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, r.options.Deadline)
	defer cancel()
	return r.client.Predict(ctx, &predictionv1.PredictRequest{TargetModel: r.options.Model, Inputs: inputs})
}

// best returns the candidate with the least score and the version that answered, or the least loaded one and the reason.
func (r *Router) best(candidates []Candidate, answer *predictionv1.PredictResponse, err error) (int, string, error) {
	if err != nil {
		return r.load.leastLoaded(candidates), "", err
	}
	index := r.load.leastScore(candidates, answer.GetOutputs())
	if index < 0 {
		return r.load.leastLoaded(candidates), "", errAllOmitted
	}
	return index, answer.GetMetadata().GetModelVersion(), nil
}

// Stats returns what became of the reports so far.
func (r *Router) Stats() Stats {
	return r.reporter.stats()
}

// Close sends waiting reports for at most 5 s, and returns what became of all reports. The error is why some were dropped.
func (r *Router) Close() (Reported, error) {
	return r.reporter.close()
}

// Choice is a request to the chosen server. Call FirstToken and Finished, or Failed.
type Choice struct {
	Candidate
	// ModelVersion is the version that answered; empty after a fallback.
	ModelVersion string
	// Err is why there was no prediction; nil with one.
	Err error

	router       *Router
	id           string
	promptTokens int32
	end          sync.Once
}

// FirstToken reports the time from dispatch to the first token.
func (c *Choice) FirstToken(ttft time.Duration) {
	c.router.reporter.firstToken(c.id, millis(ttft))
}

// Finished reports the end of the answer; elapsed is the time from the first token to the last one.
func (c *Choice) Finished(elapsed time.Duration, outputTokens int32) {
	c.end.Do(func() {
		c.leave(outputTokens)
		c.router.reporter.finished(c.id, millis(elapsed), outputTokens)
	})
}

// Failed ends a request without reporting times.
func (c *Choice) Failed() {
	c.end.Do(func() { c.leave(0) })
}

func (c *Choice) leave(outputTokens int32) {
	c.router.mu.Lock()
	defer c.router.mu.Unlock()
	c.router.load.ended(c.Address, c.promptTokens, outputTokens)
}

func millis(duration time.Duration) float64 {
	return float64(duration) / float64(time.Millisecond)
}

func newID() string {
	var bytes [12]byte
	if _, err := rand.Read(bytes[:]); err != nil {
		panic(err) // The system has no random numbers.
	}
	return hex.EncodeToString(bytes[:])
}

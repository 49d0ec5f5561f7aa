package router

import (
	"context"
	"math"
	"net"
	"os"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	predictionv1 "trivet/gen/prediction/v1"
)

var pool = []Candidate{{Address: "10.0.0.1"}, {Address: "10.0.0.2"}}

func connect(t *testing.T, address string) *grpc.ClientConn {
	t.Helper()
	connection, err := grpc.Dial(address, append(DialOptions(), grpc.WithInsecure())...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return connection
}

func choose(t *testing.T, router *Router, promptTokens int32) *Choice {
	t.Helper()
	choice, err := router.Choose(context.Background(), promptTokens, pool)
	if err != nil {
		t.Fatal(err)
	}
	return choice
}

// A service that accepts connections and never answers.
func listenSilently(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener.Addr().String()
}

func TestChooseFallsBackToTheFewestRequestsWhenNothingAnswers(t *testing.T) {
	router := New(connect(t, listenSilently(t)), Options{Model: "qwen3-32b", Deadline: 20 * time.Millisecond})
	router.SetMetrics("10.0.0.1", Metrics{Waiting: 3})
	choice := choose(t, router, 1000)
	if choice.Address != "10.0.0.2" || choice.ModelVersion != "" {
		t.Errorf("chose %q by %q", choice.Address, choice.ModelVersion)
	}
	if code := status.Code(choice.Err); code != codes.DeadlineExceeded && code != codes.Unavailable {
		t.Errorf("the reason is %v", choice.Err)
	}
}

func TestMetricsThatCannotBeTrueCountAsNotRead(t *testing.T) {
	for _, metrics := range []Metrics{{Waiting: -1}, {KVCacheUsage: -1}, {KVCacheUsage: math.NaN()}, {KVCacheUsage: math.Inf(1)}} {
		load := newLoad(DefaultMaxMetricsAge, time.Now)
		load.setMetrics("10.0.0.1", Metrics{Waiting: 2, KVCacheUsage: 0.5})
		load.setMetrics("10.0.0.1", metrics)
		if input := load.question(10, pool)[0]; input.NumRequestWaiting != 2 || input.KvCacheUsage != 0.5 {
			t.Errorf("asked %v after %v", input, metrics)
		}
	}
}

func TestLargeNumbersDoNotBecomeNegative(t *testing.T) {
	load := newLoad(DefaultMaxMetricsAge, time.Now)
	load.setMetrics("10.0.0.1", Metrics{Waiting: math.MaxInt32})
	load.dispatched(pool, 0, math.MaxInt32)
	load.dispatched(pool, 0, math.MaxInt32)
	if input := load.question(10, pool)[0]; input.NumRequestWaiting != math.MaxInt32 || input.InflightTokens != math.MaxInt32 {
		t.Errorf("asked %v", input)
	}
	if index := load.leastLoaded(pool); index != 1 {
		t.Errorf("chose %d", index)
	}
}

func TestACandidateWhosePredictionIsNoNumberIsNotChosen(t *testing.T) {
	load := newLoad(DefaultMaxMetricsAge, time.Now)
	outputs := []*predictionv1.PredictOutput{
		{InputId: 0, PredictedTtftMillis: math.NaN()}, {InputId: 1, PredictedTtftMillis: 100}, {InputId: 2}, {InputId: 3},
	}
	if index := load.leastScore(pool, outputs); index != 1 {
		t.Errorf("chose %d", index)
	}
}

func TestChooseNeedsACandidate(t *testing.T) {
	router := New(connect(t, listenSilently(t)), Options{Model: "qwen3-32b"})
	if _, err := router.Choose(context.Background(), 1000, nil); err != ErrNoCandidates {
		t.Errorf("got %v", err)
	}
}

func TestChooseSendsARequestToAServerThatGotNoneForLong(t *testing.T) {
	load := newLoad(DefaultMaxMetricsAge, time.Now)
	load.dispatched(pool, 1, 10)
	for i := 0; i <= exploreAfter*len(pool); i++ {
		load.dispatched(pool, 0, 10)
	}
	if index := load.neglected(pool, []float64{1, 1}); index != 1 {
		t.Errorf("chose %d", index)
	}
	if index := load.neglected(pool, []float64{1, math.Inf(1)}); index != -1 {
		t.Errorf("chose %d, which has no answer", index)
	}
}

func TestACandidateWithoutAnAnswerIsNotChosen(t *testing.T) {
	load := newLoad(DefaultMaxMetricsAge, time.Now)
	// The loaded row of the first candidate is missing: its server is dead.
	outputs := []*predictionv1.PredictOutput{
		{InputId: 1, PredictedTtftMillis: 900, PredictedTpotMillis: 90},
		{InputId: 2, PredictedTtftMillis: 100, PredictedTpotMillis: 10},
		{InputId: 3, PredictedTtftMillis: 100, PredictedTpotMillis: 10},
	}
	if index := load.leastScore(pool, outputs); index != 1 {
		t.Errorf("chose %d", index)
	}
	if index := load.leastScore(pool, outputs[1:]); index != -1 {
		t.Errorf("chose %d of candidates without an answer", index)
	}
}

func TestMetricsThatAreTooOldCountAsNone(t *testing.T) {
	now := time.Now()
	load := newLoad(DefaultMaxMetricsAge, func() time.Time { return now })
	load.setMetrics("10.0.0.1", Metrics{Waiting: 40, KVCacheUsage: 0.9})
	now = now.Add(DefaultMaxMetricsAge)
	if input := load.question(10, pool)[0]; input.NumRequestWaiting != 40 || input.KvCacheUsage != 0.9 {
		t.Errorf("asked %v", input)
	}
	now = now.Add(time.Millisecond)
	if input := load.question(10, pool)[0]; input.NumRequestWaiting != 0 || input.KvCacheUsage != 0 {
		t.Errorf("asked %v", input)
	}
}

// A server that died keeps no queue: without this rule it would look idle, and draw the requests.
func TestAServerWithOldMetricsIsNotChosenUnlessThoseOfAllAreOld(t *testing.T) {
	now := time.Now()
	load := newLoad(DefaultMaxMetricsAge, func() time.Time { return now })
	load.setMetrics("10.0.0.1", Metrics{Waiting: 40})
	now = now.Add(DefaultMaxMetricsAge + 1)
	load.setMetrics("10.0.0.2", Metrics{Waiting: 5})
	// Nothing was sent to the server with old metrics, so that it would be measured again.
	for i := 0; i <= exploreAfter*len(pool); i++ {
		load.dispatched(pool, 1, 10)
	}
	outputs := []*predictionv1.PredictOutput{
		{InputId: 0, PredictedTtftMillis: 100, PredictedTpotMillis: 10},
		{InputId: 1, PredictedTtftMillis: 900, PredictedTpotMillis: 90},
		{InputId: 2, PredictedTtftMillis: 100, PredictedTpotMillis: 10},
		{InputId: 3, PredictedTtftMillis: 100, PredictedTpotMillis: 10},
	}
	if scored, counted := load.leastScore(pool, outputs), load.leastLoaded(pool); scored != 1 || counted != 1 {
		t.Errorf("chose %d by score and %d by load", scored, counted)
	}
	now = now.Add(DefaultMaxMetricsAge + 1)
	if scored, counted := load.leastScore(pool, outputs), load.leastLoaded(pool); scored != 0 || counted != 0 {
		t.Errorf("chose %d by score and %d by load when the metrics of all are old", scored, counted)
	}
}

func TestAServerThatIsNotUsedIsForgotten(t *testing.T) {
	now := time.Now()
	load := newLoad(DefaultMaxMetricsAge, func() time.Time { return now })
	load.dispatched(pool, 0, 10)
	load.setMetrics("10.0.0.2", Metrics{})
	now = now.Add(forgetAfter)
	load.question(10, []Candidate{{Address: "10.0.0.3"}})
	if load.servers["10.0.0.1"] == nil || load.servers["10.0.0.2"] != nil {
		t.Errorf("kept %v", load.servers)
	}
}

func TestTheEndOfARequestIsCountedOnce(t *testing.T) {
	router := New(connect(t, listenSilently(t)), Options{Model: "qwen3-32b", Deadline: time.Millisecond})
	choice := choose(t, router, 1000)
	choice.Finished(time.Second, 20)
	choice.Finished(time.Second, 20)
	choice.Failed()
	if server := router.load.of(choice.Address); server.underWay != 0 || server.tokens != 0 {
		t.Errorf("left %+v", server)
	}
}

func TestReportsWaitWhileTheServiceIsAway(t *testing.T) {
	errs := make(chan error, 100)
	connection := connect(t, "127.0.0.1:1")
	router := New(connection, Options{Model: "qwen3-32b", Deadline: time.Millisecond, OnError: func(err error) { errs <- err }})
	choose(t, router, 1000).FirstToken(120 * time.Millisecond)
	err := <-errs
	if stats := router.Stats(); status.Code(err) != codes.Unavailable || stats.Err == nil || stats.Waiting != 2 {
		t.Errorf("%+v, %v", stats, err)
	}
	reported, err := router.Close()
	if err == nil || reported.Dropped != 2 || reported.Accepted != 0 {
		t.Errorf("reported %+v, %v", reported, err)
	}
}

// The rest needs the service: TRIVET_GRPC_ADDRESS=127.0.0.1:50051, or unix:///path of its socket.
func service(t *testing.T) *Router {
	t.Helper()
	address := os.Getenv("TRIVET_GRPC_ADDRESS")
	if address == "" {
		t.Skip("TRIVET_GRPC_ADDRESS is not set")
	}
	return New(connect(t, address), Options{Model: "qwen3-32b", Deadline: 30 * time.Second})
}

func TestTheServicePredictsAndTakesEveryReport(t *testing.T) {
	router := service(t)
	for i := 0; i < 60; i++ {
		choice := choose(t, router, int32(500+10*i))
		if choice.Err != nil || choice.ModelVersion == "" {
			t.Fatalf("no prediction: %v", choice.Err)
		}
		choice.FirstToken(120 * time.Millisecond)
		choice.Finished(2*time.Second, 181)
	}
	reported, err := router.Close()
	if err != nil || reported.Accepted != 180 || reported.Refused != 0 || reported.Dropped != 0 {
		t.Errorf("reported %+v, %v", reported, err)
	}
}

// TRIVET_CLOSED_ADDRESS is a service that asks for a token, which this router has not.
func TestOnErrorSaysWhyTheServiceTakesNoReports(t *testing.T) {
	address := os.Getenv("TRIVET_CLOSED_ADDRESS")
	if address == "" {
		t.Skip("TRIVET_CLOSED_ADDRESS is not set")
	}
	errs := make(chan error, 100)
	options := Options{Model: "qwen3-32b", Deadline: time.Second, OnError: func(err error) { errs <- err }}
	router := New(connect(t, address), options)
	choose(t, router, 1000)
	err := <-errs
	if stats := router.Stats(); status.Code(err) != codes.Unauthenticated || stats.Waiting != 1 {
		t.Errorf("%+v, %v", stats, err)
	}
}

// TRIVET_LATE_ADDRESS has no service yet. One is started once this test has written a line.
func TestReportsOfBeforeTheServiceAreKept(t *testing.T) {
	address := os.Getenv("TRIVET_LATE_ADDRESS")
	if address == "" {
		t.Skip("TRIVET_LATE_ADDRESS is not set")
	}
	router := New(connect(t, address), Options{Model: "qwen3-32b", Deadline: 10 * time.Millisecond})
	for i := 0; i < 100; i++ {
		choice := choose(t, router, 1000)
		choice.FirstToken(120 * time.Millisecond)
		choice.Finished(2*time.Second, 181)
	}
	os.Stdout.WriteString("routed\n")
	for router.Stats().Accepted == 0 {
		time.Sleep(20 * time.Millisecond)
	}
	if reported, err := router.Close(); err != nil || reported.Accepted != 300 || reported.Dropped != 0 {
		t.Errorf("reported %+v, %v", reported, err)
	}
}

// TRIVET_SMALL_ADDRESS is a service that takes messages of at most 20,000 bytes.
func TestABatchThatIsTooLargeIsSentInParts(t *testing.T) {
	address := os.Getenv("TRIVET_SMALL_ADDRESS")
	if address == "" {
		t.Skip("TRIVET_SMALL_ADDRESS is not set")
	}
	ctx, cancel := context.WithCancel(context.Background())
	reporter := newReporter(connect(t, address), nil, cancel)
	for i := 0; i < 200; i++ {
		id := newID()
		reporter.dispatched(id, "qwen3-32b", &predictionv1.PredictInput{ServerIp: "10.0.0.1", InputTokenLength: 1000})
		reporter.firstToken(id, 120)
		reporter.finished(id, 2000, 181)
	}
	go reporter.run(ctx)
	if reported, err := reporter.close(); err != nil || reported.Accepted != 600 || reported.Dropped != 0 {
		t.Errorf("reported %+v, %v", reported, err)
	}
}

// TRIVET_ENDING_ADDRESS is a service that is killed once this test has written a line.
func TestCountsOutliveTheService(t *testing.T) {
	address := os.Getenv("TRIVET_ENDING_ADDRESS")
	if address == "" {
		t.Skip("TRIVET_ENDING_ADDRESS is not set")
	}
	router := New(connect(t, address), Options{Model: "qwen3-32b", Deadline: time.Second})
	choose(t, router, 1000).FirstToken(120 * time.Millisecond)
	for router.Stats().Accepted < 2 {
		time.Sleep(20 * time.Millisecond)
	}
	os.Stdout.WriteString("taken\n")
	events := int64(2)
	for router.Stats().Err == nil {
		choose(t, router, 1000).Failed()
		events++
		time.Sleep(20 * time.Millisecond)
	}
	reported, err := router.Close()
	if err == nil || reported.Accepted < 2 || reported.Dropped < 1 || reported.Accepted+reported.Dropped != events {
		t.Errorf("of %d events reported %+v, %v", events, reported, err)
	}
}

func TestAQueueSendsRequestsElsewhere(t *testing.T) {
	router := service(t)
	router.SetMetrics("10.0.0.1", Metrics{Waiting: 40, KVCacheUsage: 0.9})
	if choice := choose(t, router, 1000); choice.Address != "10.0.0.2" {
		t.Errorf("chose %q", choice.Address)
	}
}

// TRIVET_LIVE_SERVER is a server that the service scrapes, and "dead" another one, whose load it cannot read.
func TestADeadServerLeavesTheOthersTheirPredictions(t *testing.T) {
	live := os.Getenv("TRIVET_LIVE_SERVER")
	if live == "" {
		t.Skip("TRIVET_LIVE_SERVER is not set")
	}
	router := service(t)
	for _, candidates := range [][]Candidate{{{Address: "dead"}, {Address: live}}, {{Address: live}, {Address: "dead"}}} {
		choice, err := router.Choose(context.Background(), 1000, candidates)
		if err != nil || choice.Err != nil || choice.Address != live || choice.ModelVersion == "" {
			t.Errorf("chose %+v, %v", choice, err)
		}
	}
	choice, err := router.Choose(context.Background(), 1000, []Candidate{{Address: "dead"}})
	if err != nil || choice.Err != errAllOmitted || choice.ModelVersion != "" {
		t.Errorf("chose %+v, %v", choice, err)
	}
}

func TestTheServiceNamesWhatItRefuses(t *testing.T) {
	router := service(t)
	choose(t, router, 1000).FirstToken(-time.Second)
	reported, err := router.Close()
	if err != nil || reported.Accepted != 1 || reported.Refused != 1 {
		t.Fatalf("reported %+v, %v", reported, err)
	}
	if reason := reported.Reasons[0]; reason != "ttft_millis must be more than 0 and at most a day, got -1000" {
		t.Errorf("the reason is %q", reason)
	}
}

package router

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/h2c"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

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

// startReports returns a reporter to this service.
func startReports(t *testing.T, service *observations, onError func(error)) *reporter {
	t.Helper()
	return startReporter(startService(t, service), onError)
}

func startService(t *testing.T, service *observations) *grpc.ClientConn {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	observationv1.RegisterObservationServiceServer(server, service)
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	return connect(t, listener.Addr().String())
}

func TestFullBatchesFollowEachOtherWithoutAPause(t *testing.T) {
	reporter := newReporter(startService(t, &observations{take: takeAll}), nil, func() {})
	for i := 0; i < maxWaiting; i++ {
		reporter.firstToken("r", 1)
	}
	pauses := 0
	for i := 0; i < maxWaiting/maxBatch; i++ {
		if reporter.trySend(context.Background()) > 0 {
			pauses++
		}
	}
	if accepted := reporter.stats().Accepted; accepted != maxWaiting || pauses != 0 {
		t.Errorf("%d events were accepted, with %d pauses", accepted, pauses)
	}
}

// refuse returns a take that answers its first batches with these errors, and takes the others.
func refuse(header metadata.MD, refusals ...error) func(context.Context, []*observationv1.Event) (*observationv1.ReportResponse, error) {
	return func(ctx context.Context, events []*observationv1.Event) (*observationv1.ReportResponse, error) {
		if len(refusals) == 0 {
			return takeAll(ctx, events)
		}
		refusal := refusals[0]
		refusals = refusals[1:]
		grpc.SetTrailer(ctx, header)
		return nil, refusal
	}
}

func TestOnlyWhatCannotBeReadOrIsTooLargeIsFinal(t *testing.T) {
	const newer = "unexpected HTTP status code received from server: 413 (Request Entity Too Large); transport: received unexpected content-type"
	for _, one := range []struct {
		code    codes.Code
		text    string
		isFinal bool
	}{
		{codes.InvalidArgument, "events must be at most 10,000", true},
		{codes.ResourceExhausted, "Cannot read the message: it must be at most 20000 bytes, got 30000", true},
		{codes.ResourceExhausted, "rate limited", false},
		{codes.Unknown, "Request Entity Too Large: HTTP status code 413; transport: missing content-type field", true},
		{codes.Unknown, newer + " \"text/html\"\n<html>\n", true},
		{codes.Unknown, "Payload Too Large", true},
		{codes.Unknown, "unexpected HTTP status code received from server: 400 (Bad Request); <p>port 4130, Payload Too Large</p> 413 ", false},
		{codes.Unimplemented, "413", false},
	} {
		if isFinal(status.Error(one.code, one.text)) != one.isFinal {
			t.Errorf("%v %q is final: %v", one.code, one.text, !one.isFinal)
		}
	}
}

func TestAnEventThatIsRefusedForGoodIsDroppedWithItsReason(t *testing.T) {
	for _, refusal := range []error{
		status.Error(codes.InvalidArgument, "the reason"),
		status.Error(codes.ResourceExhausted, "it must be at most 9 bytes"),
	} {
		errs := make(chan error, 10)
		reporter := startReports(t, &observations{take: refuse(nil, refusal)}, func(err error) { errs <- err })
		reporter.firstToken("r", 1)
		err := <-errs
		if stats := reporter.stats(); stats.Dropped != 1 || stats.Waiting != 0 || len(stats.Reasons) != 1 || err.Error() != refusal.Error() {
			t.Errorf("%+v, %v", stats, err)
		}
		reporter.firstToken("r", 1)
		if reported, err := reporter.close(); err != nil || reported.Accepted != 1 || reported.Dropped != 1 {
			t.Errorf("reported %+v, %v", reported, err)
		}
	}
}

func TestBadEventsAreDroppedWithoutAPauseWhileGoodOnesAreTaken(t *testing.T) {
	service := &observations{take: func(ctx context.Context, events []*observationv1.Event) (*observationv1.ReportResponse, error) {
		for _, event := range events {
			if event.GetFirstToken().GetRequestId() == "bad" {
				return nil, status.Error(codes.InvalidArgument, "refused for good")
			}
		}
		return takeAll(ctx, events)
	}}
	var mu sync.Mutex
	calls := 0
	reporter := startReports(t, service, func(error) {
		mu.Lock()
		defer mu.Unlock()
		calls++
	})
	start := time.Now()
	for i := 0; i < 2000; i++ {
		id := "r"
		if i%100 == 50 {
			id = "bad"
		}
		reporter.firstToken(id, 1)
	}
	for reporter.stats().Waiting > 0 {
		time.Sleep(time.Millisecond)
	}
	took := time.Since(start)
	mu.Lock()
	defer mu.Unlock()
	if stats := reporter.stats(); took > 3*time.Second || stats.Accepted != 1980 || stats.Dropped != 20 || calls > 1+int(took.Seconds()) {
		t.Errorf("%d accepted and %d dropped in %v, OnError was called %d times", stats.Accepted, stats.Dropped, took, calls)
	}
}

func TestABatchThatIsTooLargeIsHalvedAndBatchesGrowAgain(t *testing.T) {
	service := &observations{take: func(ctx context.Context, events []*observationv1.Event) (*observationv1.ReportResponse, error) {
		if len(events) > 100 {
			return nil, status.Error(codes.ResourceExhausted, "it must be at most 100 bytes")
		}
		return takeAll(ctx, events)
	}}
	ctx, cancel := context.WithCancel(context.Background())
	reporter := newReporter(startService(t, service), nil, cancel)
	for i := 0; i < 700; i++ {
		reporter.firstToken("r", 1)
	}
	go reporter.run(ctx)
	reported, err := reporter.close()
	want := []int{500, 250, 125, 62, 72, 82, 92, 102, 51, 61, 71, 81, 91, 37}
	if err != nil || reported.Accepted != 700 || !reflect.DeepEqual(service.batches, want) {
		t.Errorf("reported %+v, %v in batches of %v", reported, err, service.batches)
	}
}

// reportBehindProxy reports an event to a proxy that answers the first call itself, and another one at the end.
func reportBehindProxy(t *testing.T, answerFirst http.HandlerFunc) (error, Reported) {
	t.Helper()
	service := grpc.NewServer()
	observationv1.RegisterObservationServiceServer(service, &observations{take: takeAll})
	calls := 0
	proxy := httptest.NewServer(h2c.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls++; calls == 1 {
			answerFirst(w, r)
			return
		}
		service.ServeHTTP(w, r)
	}), &http2.Server{}))
	t.Cleanup(proxy.CloseClientConnections)
	errs := make(chan error, 10)
	reporter := startReporter(connect(t, proxy.Listener.Addr().String()), func(err error) { errs <- err })
	reporter.firstToken("r", 1)
	reason := <-errs
	reporter.firstToken("r", 1)
	reported, err := reporter.close()
	if err != nil {
		t.Errorf("closed with %v", err)
	}
	return reason, reported
}

// answerHTTP answers with this status alone.
func answerHTTP(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}

// answerGrpc answers with this status of gRPC and no message.
func answerGrpc(code, message string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Grpc-Status", code)
		w.Header().Set("Grpc-Message", message)
	}
}

func TestABatchWaitsThatAProxyWithoutARouteAnswersWith404(t *testing.T) {
	reason, reported := reportBehindProxy(t, answerHTTP(http.StatusNotFound))
	if status.Code(reason) != codes.Unimplemented || reported.Accepted != 2 || reported.Dropped != 0 {
		t.Errorf("reported %+v after %v", reported, reason)
	}
}

func TestAnEventIsDroppedThatIsTooLargeForAProxy(t *testing.T) {
	for _, answer := range []http.HandlerFunc{answerHTTP(http.StatusRequestEntityTooLarge), answerGrpc("2", "Payload Too Large")} {
		reason, reported := reportBehindProxy(t, answer)
		if !strings.Contains(reason.Error(), "Too Large") || reported.Accepted != 1 || reported.Dropped != 1 {
			t.Errorf("reported %+v after %v", reported, reason)
		}
	}
}

func TestABatchWaitsThatSomethingElseRefusesForLackOfRoom(t *testing.T) {
	reason, reported := reportBehindProxy(t, answerGrpc("8", "rate limited"))
	if status.Code(reason) != codes.ResourceExhausted || reported.Accepted != 2 || reported.Dropped != 0 {
		t.Errorf("reported %+v after %v", reported, reason)
	}
}

func TestAnEventThatCannotBeEncodedIsRefusedAndTheOthersAreSent(t *testing.T) {
	reporter := startReports(t, &observations{take: takeAll}, nil)
	reporter.firstToken("\xff", 1)
	reporter.firstToken("r", 1)
	reported, err := reporter.close()
	if err != nil || reported.Accepted != 1 || reported.Refused != 1 || !strings.Contains(reported.Reasons[0], "UTF-8") {
		t.Errorf("reported %+v, %v", reported, err)
	}
}

func TestTheNextAttemptComesWhenTheServiceSays(t *testing.T) {
	for _, code := range []codes.Code{codes.Unavailable, codes.ResourceExhausted} {
		pushback := metadata.Pairs("grpc-retry-pushback-ms", "2000")
		reporter := startReports(t, &observations{take: refuse(pushback, status.Error(code, "no room"))}, nil)
		start := time.Now()
		reporter.firstToken("r", 1)
		for reporter.stats().Accepted < 1 {
			time.Sleep(time.Millisecond)
		}
		if took := time.Since(start); took < 2*time.Second {
			t.Errorf("took %v after %v", took, code)
		}
	}
}

func TestCloseDoesNotWaitForTheNextAttempt(t *testing.T) {
	pushback := metadata.Pairs("grpc-retry-pushback-ms", "60000")
	errs := make(chan error, 10)
	reporter := startReports(t, &observations{take: refuse(pushback, status.Error(codes.Unavailable, "no room"))}, func(err error) { errs <- err })
	reporter.firstToken("r", 1)
	<-errs
	if reported, err := reporter.close(); err != nil || reported.Accepted != 1 {
		t.Errorf("reported %+v, %v", reported, err)
	}
}

func hang(ctx context.Context, _ []*observationv1.Event) (*observationv1.ReportResponse, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestCloseKeepsTheReasonWhenItsTimeEndsDuringACall(t *testing.T) {
	t.Parallel()
	// Close makes the second attempt at once and the third one a second later.
	refusals := 2
	errs := make(chan error, 10)
	service := &observations{take: func(ctx context.Context, events []*observationv1.Event) (*observationv1.ReportResponse, error) {
		if refusals--; refusals >= 0 {
			return nil, status.Error(codes.Unavailable, "the reason")
		}
		return hang(ctx, events)
	}}
	reporter := startReports(t, service, func(err error) { errs <- err })
	reporter.firstToken("r", 1)
	<-errs
	reported, err := reporter.close()
	if reported.Dropped != 1 || status.Code(err) != codes.Unavailable || len(service.batches) != 3 {
		t.Errorf("reported %+v, %v after %v", reported, err, service.batches)
	}
}

func TestCloseSaysThatTheServiceDidNotAnswer(t *testing.T) {
	t.Parallel()
	taken := make(chan struct{}, 1)
	service := &observations{take: func(ctx context.Context, events []*observationv1.Event) (*observationv1.ReportResponse, error) {
		if len(events) == 1 {
			taken <- struct{}{}
			time.Sleep(100 * time.Millisecond) // Close begins before the second call, which then outlasts it.
			return takeAll(ctx, events)
		}
		return hang(ctx, events)
	}}
	reporter := startReports(t, service, nil)
	reporter.firstToken("r", 1)
	<-taken
	reporter.firstToken("r", 1)
	reporter.firstToken("r", 1)
	if reported, err := reporter.close(); reported.Accepted != 1 || reported.Dropped != 2 || err != errGaveUp {
		t.Errorf("reported %+v, %v", reported, err)
	}
}

func TestOnErrorMayCloseTheRouter(t *testing.T) {
	closed := make(chan Reported, 10)
	var reporter *reporter
	started := make(chan struct{})
	reporter = startReports(t, &observations{take: refuse(nil, status.Error(codes.Unavailable, "no room"))}, func(error) {
		<-started
		reported, _ := reporter.close()
		closed <- reported
	})
	close(started)
	reporter.firstToken("r", 1)
	select {
	case reported := <-closed:
		if reported.Accepted != 1 {
			t.Errorf("reported %+v", reported)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("Close waits for itself")
	}
}

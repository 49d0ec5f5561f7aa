// Keeps the load of each server, and chooses a server by the score of docs/how-to/route.md.

package router

import (
	"math"
	"time"

	predictionv1 "trivet/gen/prediction/v1"
)

const (
	// Weight of the time to the first token relative to the rest of the answer.
	ttftWeight = 6
	// Scores this close count as equal.
	tie = 1.05
	// A server that got none of the last exploreAfter × (number of servers) requests gets the next one, so that it is measured again.
	exploreAfter = 50
	// A server without requests under way that was not used for this long is forgotten.
	forgetAfter = time.Hour
)

// server is what this router knows about one server.
type server struct {
	metrics Metrics
	// readAt is when the metrics were read; zero without metrics.
	readAt time.Time
	// usedAt is when the server was last a candidate, or got metrics.
	usedAt           time.Time
	sentSinceMetrics int32
	underWay         int32
	tokens           int64
	lastSent         int
}

// load counts what this router has sent: these numbers are fresh even when the metrics of a server are old.
type load struct {
	servers          map[string]*server
	sent             int
	meanOutputTokens float64
	maxMetricsAge    time.Duration
	now              func() time.Time
	sweptAt          time.Time
}

func newLoad(maxMetricsAge time.Duration, now func() time.Time) *load {
	return &load{
		servers:          map[string]*server{},
		meanOutputTokens: 200,
		maxMetricsAge:    maxMetricsAge,
		now:              now,
		sweptAt:          now(),
	}
}

// setMetrics ignores impossible metrics.
func (l *load) setMetrics(address string, metrics Metrics) {
	if !metrics.canBeTrue() {
		return
	}
	server := l.of(address)
	server.metrics, server.readAt, server.sentSinceMetrics = metrics, l.now(), 0
}

// metricsOf returns false unless the server has metrics that are new enough.
func (l *load) metricsOf(server *server) (Metrics, bool) {
	if server.readAt.IsZero() || l.now().Sub(server.readAt) > l.maxMetricsAge {
		return Metrics{}, false
	}
	return server.metrics, true
}

// findOld marks the candidates with old metrics, because a dead server would look idle. If all are old, it marks none.
func (l *load) findOld(candidates []Candidate) []bool {
	old, count := make([]bool, len(candidates)), 0
	for i, candidate := range candidates {
		server := l.of(candidate.Address)
		if _, ok := l.metricsOf(server); !ok && !server.readAt.IsZero() {
			old[i] = true
			count++
		}
	}
	if count == len(candidates) {
		return make([]bool, count)
	}
	return old
}

// waiting is the queue at the last read, plus requests that were sent since then and have not ended.
func (l *load) waiting(server *server) int32 {
	metrics, ok := l.metricsOf(server)
	if !ok {
		return 0
	}
	since := server.sentSinceMetrics
	if server.underWay < since {
		since = server.underWay
	}
	return toInt32(int64(metrics.Waiting) + int64(since))
}

// toInt32 limits a sum to the largest int32, so that it does not overflow.
func toInt32(sum int64) int32 {
	if sum > math.MaxInt32 {
		return math.MaxInt32
	}
	return int32(sum)
}

// forgetUnused bounds the memory of a router whose servers come and go.
func (l *load) forgetUnused() {
	now := l.now()
	if now.Sub(l.sweptAt) < forgetAfter {
		return
	}
	l.sweptAt = now
	for address, server := range l.servers {
		if server.underWay == 0 && now.Sub(server.usedAt) >= forgetAfter {
			delete(l.servers, address)
		}
	}
}

func (l *load) of(address string) *server {
	known, ok := l.servers[address]
	if !ok {
		known = &server{lastSent: l.sent}
		l.servers[address] = known
	}
	known.usedAt = l.now()
	return known
}

// question asks about each candidate twice: input i is candidate i with its present load, input i + n the same candidate idle.
func (l *load) question(promptTokens int32, candidates []Candidate) []*predictionv1.PredictInput {
	l.forgetUnused()
	n := len(candidates)
	inputs := make([]*predictionv1.PredictInput, 2*n)
	for i, candidate := range candidates {
		inputs[i+n] = idleInput(int32(i+n), promptTokens, candidate)
		inputs[i] = l.loadedInput(int32(i), promptTokens, candidate)
	}
	return inputs
}

func idleInput(id, promptTokens int32, candidate Candidate) *predictionv1.PredictInput {
	return &predictionv1.PredictInput{
		InputId:          id,
		ServerIp:         candidate.Address,
		PodType:          candidate.PodType,
		InputTokenLength: promptTokens,
		PrefixCacheScore: candidate.PrefixCacheScore,
	}
}

func (l *load) loadedInput(id, promptTokens int32, candidate Candidate) *predictionv1.PredictInput {
	server := l.of(candidate.Address)
	metrics, _ := l.metricsOf(server)
	input := idleInput(id, promptTokens, candidate)
	input.NumRequestWaiting = l.waiting(server)
	input.NumRequestRunning = server.underWay
	input.KvCacheUsage = metrics.KVCacheUsage
	input.InflightTokens = toInt32(server.tokens)
	return input
}

// leastScore chooses by the score of docs/how-to/route.md: the time of the request itself, and the delay of those under way.
// A candidate that was not chosen for a long time comes first, so that it is measured again. Of candidates within 5 % of the least
// score, it chooses the one with the fewest requests since its last metrics. It does not choose a candidate without an answer, nor
// one with old metrics unless all have old ones, and returns -1 when no other is left.
func (l *load) leastScore(candidates []Candidate, outputs []*predictionv1.PredictOutput) int {
	byID := make(map[int32]*predictionv1.PredictOutput, len(outputs))
	for _, output := range outputs {
		byID[output.GetInputId()] = output
	}
	scores, old := make([]float64, len(candidates)), l.findOld(candidates)
	least := math.Inf(1)
	for i, candidate := range candidates {
		scores[i] = math.Inf(1)
		if !old[i] {
			scores[i] = l.score(byID[int32(i)], byID[int32(i+len(candidates))], l.of(candidate.Address).underWay)
		}
		least = math.Min(least, scores[i])
	}
	if neglected := l.neglected(candidates, scores); neglected >= 0 {
		return neglected
	}
	return l.leastSent(candidates, func(i int) bool { return isEligible(scores[i]) && scores[i] <= least*tie })
}

// score is infinite without a prediction.
func (l *load) score(loaded, idle *predictionv1.PredictOutput, underWay int32) float64 {
	if loaded == nil || idle == nil {
		return math.Inf(1)
	}
	own := ttftWeight*loaded.PredictedTtftMillis + l.meanOutputTokens*loaded.PredictedTpotMillis
	slowdown := 1.0
	if idle.PredictedTpotMillis > 0 {
		slowdown = math.Max(1, loaded.PredictedTpotMillis/idle.PredictedTpotMillis)
	}
	total := own + float64(underWay)*idle.PredictedTtftMillis*slowdown
	if math.IsNaN(total) {
		return math.Inf(1)
	}
	return total
}

func isEligible(score float64) bool {
	return !math.IsInf(score, 1)
}

// leastSent returns the allowed candidate to which the fewest requests went since its metrics were read.
func (l *load) leastSent(candidates []Candidate, allowed func(int) bool) int {
	best := -1
	for i, candidate := range candidates {
		if !allowed(i) {
			continue
		}
		if best < 0 || l.of(candidate.Address).sentSinceMetrics < l.of(candidates[best].Address).sentSinceMetrics {
			best = i
		}
	}
	return best
}

// neglected returns an eligible candidate that was not chosen for a long time, or -1.
func (l *load) neglected(candidates []Candidate, scores []float64) int {
	for i, candidate := range candidates {
		if isEligible(scores[i]) && l.sent-l.of(candidate.Address).lastSent > exploreAfter*len(candidates) {
			return i
		}
	}
	return -1
}

// leastLoaded chooses without predictions: the fewest requests, waiting and under way. It does not choose a candidate with old
// metrics unless all have old ones.
func (l *load) leastLoaded(candidates []Candidate) int {
	best, least := -1, int64(0)
	old := l.findOld(candidates)
	for i, candidate := range candidates {
		if old[i] {
			continue
		}
		server := l.of(candidate.Address)
		metrics, _ := l.metricsOf(server)
		if requests := int64(metrics.Waiting) + int64(server.underWay); best < 0 || requests < least {
			best, least = i, requests
		}
	}
	return best
}

func (l *load) dispatched(candidates []Candidate, index int, promptTokens int32) {
	l.sent++
	server := l.of(candidates[index].Address)
	server.lastSent = l.sent
	server.sentSinceMetrics++
	server.underWay++
	server.tokens += int64(promptTokens)
}

func (l *load) ended(address string, promptTokens, outputTokens int32) {
	server := l.of(address)
	server.underWay--
	server.tokens -= int64(promptTokens)
	if outputTokens > 0 {
		l.meanOutputTokens += (float64(outputTokens) - l.meanOutputTokens) / 100
	}
}

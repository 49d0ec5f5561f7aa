// Builds the events that report a request: dispatched, first token, finished.

package router

import (
	"google.golang.org/protobuf/types/known/timestamppb"

	observationv1 "trivet/gen/observation/v1"
	predictionv1 "trivet/gen/prediction/v1"
)

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

/** Runs the process in which models are trained. Until the first of them, it costs next to nothing. */
import { answerOrders } from '../../workers/background-process.ts';
import type { TrainingAnswer, TrainingOrder } from './learn-from-samples.ts';

answerOrders(async (order: TrainingOrder): Promise<TrainingAnswer> => {
  const { learnFromSamples } = await import('./learn-from-samples.ts');
  return await learnFromSamples(order);
});

/** Runs the child process in which models are trained. It loads the code at the first training, and costs next to nothing before. */
import { answerOrders } from '../../workers/background-process.ts';
import type { TrainingAnswer, TrainingOrder } from './learn-from-samples.ts';

answerOrders(async (order: TrainingOrder): Promise<TrainingAnswer> => {
  const { learnFromSamples } = await import('./learn-from-samples.ts');
  return await learnFromSamples(order);
});

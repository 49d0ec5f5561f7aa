/** Trains again and again, as the service does when it learns; for the calls that are answered meanwhile. */
import { trainSyntheticModel } from './trained-predictor.ts';

for (;;) trainSyntheticModel(50_000);

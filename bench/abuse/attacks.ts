import type { Attack } from './attack.ts';
import { connectionAttacks } from './connection-attacks.ts';
import { controlFrameAttacks } from './control-frame-attacks.ts';
import { greedyClients } from './greedy-clients.ts';
import { memoryAttacks } from './memory-attacks.ts';

export const attacks: readonly Attack[] = [
  ...controlFrameAttacks,
  ...memoryAttacks,
  ...connectionAttacks,
  ...greedyClients,
];

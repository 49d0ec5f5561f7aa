import type { Bridge, ReadHeader } from './bridge.ts';
import { gitea } from './gitea.ts';
import { github } from './github.ts';
import { gitlab } from './gitlab.ts';

/** In the order in which they are asked: Gitea sends GitHub's headers too. */
export const BRIDGE_NAMES = ['gitlab', 'gitea', 'github'] as const;
export type BridgeName = (typeof BRIDGE_NAMES)[number];

const BRIDGES: Readonly<Record<BridgeName, Bridge>> = { gitlab, gitea, github };

export interface RecognisedBridge {
  readonly name: BridgeName;
  readonly bridge: Bridge;
}

export function findBridge(header: ReadHeader): RecognisedBridge | undefined {
  const name = BRIDGE_NAMES.find((candidate) => BRIDGES[candidate].recognises(header));
  return name && { name, bridge: BRIDGES[name] };
}

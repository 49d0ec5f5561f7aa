/** Recognises which code host sent an incoming webhook, and translates it into our event (incoming only). */
import { Failure } from '../../errors.ts';
import type { EventInput } from '../events/event.ts';
import type { Bridge, Json, ReadHeader } from './bridge.ts';
import { gitea } from './gitea.ts';
import { github } from './github.ts';
import { gitlab } from './gitlab.ts';

/** In the order in which they are tried: Gitea sends GitHub's headers too. */
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

/** Throws `invalid` for a payload that is not of the form that its host sends. Undefined where `Bridge.translate` is. */
export function translateWebhook(
  { name, bridge }: RecognisedBridge,
  header: ReadHeader,
  payload: Json,
): EventInput | undefined {
  try {
    return bridge.translate(header, payload);
  } catch (cause) {
    // Reading a field of a missing object throws. The sender's input is at fault, so this is not an internal error.
    throw new Failure('invalid', `Cannot read the webhook: it is not of the form that ${name} sends`, {}, { cause });
  }
}

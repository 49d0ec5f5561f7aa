import type { Attempt, RenderContext } from '../../../src/webhooks/profiles/profile.ts';
import type { Repository } from '../../../src/webhooks/repositories/repository.ts';

export const repository: Repository = {
  id: 42,
  ownerKind: 'organization',
  ownerId: 'o1',
  ownerLogin: 'acme',
  name: 'Doors',
  path: 'doors',
  description: 'They open and close',
  isPrivate: false,
  defaultBranch: 'main',
  webUrl: 'https://code.example.com/acme/doors',
  httpUrl: 'https://code.example.com/acme/doors.git',
  sshUrl: 'git@code.example.com:acme/doors.git',
  createdAtMs: Date.UTC(2026, 0, 1),
  updatedAtMs: Date.UTC(2026, 1, 1),
};
export const context: RenderContext = {
  repository,
  hookId: 7,
  deliveryUuid: '607294e6-0e65-417f-a42b-3edd70de32ee',
  nowMs: Date.UTC(2026, 2, 1),
};
export const TIMESTAMP_MS = 1_772_330_400_000;

export function createAttempt(changes: Partial<Attempt>): Attempt {
  return {
    hookId: 7,
    encryptionType: 1,
    secrets: { current: Buffer.from('secret'), previous: [] },
    eventKind: 'push',
    deliveryUuid: context.deliveryUuid,
    body: Buffer.from('{}'),
    timestampMs: TIMESTAMP_MS,
    ...changes,
  };
}

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { context, createAttempt, TIMESTAMP_MS } from '../../../test/support/webhooks/delivery-attempt.ts';
import { EVENT_KINDS, type EventKind } from '../events/event-kind.ts';
import { createSampleEvent } from '../events/sample-event.ts';
import { PROFILE_NAMES, type ProfileName } from '../hooks/hook.ts';
import { PROFILES, prepareRequest } from './profiles.ts';
import { signBody, signTimestamp } from './signature.ts';

const SIGNATURES: [key: string, body: string, value: string][] = [
  [
    'secret',
    '{\n    "content": "MTI0MTQxMjQxMjQ=",\n    "message": "fas",\n    "branch": "test1-patch-1"\n}',
    'sha256=3938a65bf0a111e17a7dfe928ea0c73a38c5af80006a939a81c46b372e8f8815',
  ],
  [
    '1234',
    '{\n  "note": "/ibforuorg/community-test/pulls/2#note_30974945" \n }',
    'sha256=f585860d0ca237e0550da0e166370b9c372e8aeb2e639b0ac9884cd52681c576',
  ],
  ['1234', '', 'sha256=36acf017ea0974457577506ef75268ac93ed6d61864ee994f438b63916ed1736'],
  [
    "It's a Secret to Everybody",
    'Hello, World!',
    'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17',
  ],
];

for (const [key, body, value] of SIGNATURES)
  test(`the gitcode signature of ${JSON.stringify(body.slice(0, 20))} under "${key}" is the known one`, () => {
    assert.equal(signBody(Buffer.from(key), Buffer.from(body)), value);
    const attempt = createAttempt({ secrets: { current: Buffer.from(key), previous: [] }, body: Buffer.from(body) });
    assert.equal(PROFILES.gitcode.headers(attempt)['X-GitCode-Signature-256'], value);
  });

test('the gitee signature of a known time under a known key is the known one', () => {
  assert.equal(
    signTimestamp(Buffer.from('bBg5lrt03VixkX85CNqYIcecC0SIGASE'), 1_633_679_083_918),
    'Xvh4YPVe6l31XpDRL9J2yeaEXabsckIoUUschpXiVck=',
  );
});

test('gitcode sends its headers, and a password instead of a signature for encryption type 0', () => {
  const signed = PROFILES.gitcode.headers(createAttempt({ eventKind: 'merge_request' }));
  assert.equal(signed['User-Agent'], 'git-gitcode-hook');
  assert.equal(signed['Content-Type'], 'application/json');
  assert.equal(signed['X-GitCode-Event'], 'Merge Request Hook');
  assert.equal(signed['X-GitCode-Delivery'], context.deliveryUuid);
  assert.equal(signed['X-GitCode-Token'], undefined);
  const plain = PROFILES.gitcode.headers(createAttempt({ encryptionType: 0 }));
  assert.equal(plain['X-GitCode-Token'], 'secret');
  assert.equal(plain['X-GitCode-Signature-256'], undefined);
});

test('a hook without a password sends neither token nor signature', () => {
  for (const profile of PROFILE_NAMES)
    for (const encryptionType of [0, 1] as const) {
      const headers = PROFILES[profile].headers(
        createAttempt({ encryptionType, secrets: { current: null, previous: [] } }),
      );
      const proofs = Object.keys(headers).filter((name) => /token|signature/i.test(name));
      assert.deepEqual(proofs, []);
    }
});

for (const profile of PROFILE_NAMES)
  for (const kind of EVENT_KINDS)
    test(`standardwebhooks accepts a ${kind} delivery of ${profile}, and refuses it changed`, () => {
      checkStandard(profile, kind);
    });

function checkStandard(profile: ProfileName, kind: EventKind): void {
  const nowMs = Date.now();
  const event = createSampleEvent(kind, { username: 'grace', name: 'Grace' }, 'main', nowMs);
  const body = PROFILES[profile].render(event, context);
  const request = prepareRequest(profile, createAttempt({ eventKind: kind, body, timestampMs: nowMs }));
  const receiver = new Webhook('secret', { format: 'raw' });
  assert.ok(receiver.verify(Buffer.from(request.body), request.headers));
  assert.throws(
    () => receiver.verify(`${Buffer.from(request.body).toString()} `, request.headers),
    /No matching signature/,
  );
}

test('while a key is being changed, receivers with the new or the former key accept; one with another key does not', () => {
  const attempt = createAttempt({
    secrets: { current: Buffer.from('whsec_bmV3LWtleQ=='), previous: [{ secret: Buffer.from('former'), untilMs: 0 }] },
    timestampMs: Date.now(),
  });
  const { headers, body } = prepareRequest('gitcode', attempt);
  for (const receiver of [new Webhook('whsec_bmV3LWtleQ=='), new Webhook('former', { format: 'raw' })])
    assert.ok(receiver.verify(Buffer.from(body), headers));
  const stranger = new Webhook('other', { format: 'raw' });
  assert.throws(() => stranger.verify(Buffer.from(body), headers), /No matching signature/);
});

test('gitee puts password, sign and time into the body of each attempt, and none of them into the stored one', () => {
  const event = createSampleEvent('push', { username: 'grace', name: 'Grace' }, 'main', TIMESTAMP_MS);
  const stored = PROFILES.gitee.render(event, context);
  assert.doesNotMatch(Buffer.from(stored).toString(), /"password"|"sign"/);
  const signed = JSON.parse(String(prepareRequest('gitee', createAttempt({ body: stored })).body));
  assert.equal(signed.password, '');
  assert.equal(signed.sign, signTimestamp(Buffer.from('secret'), TIMESTAMP_MS));
  assert.equal(signed.timestamp, String(TIMESTAMP_MS));
  const plain = JSON.parse(String(prepareRequest('gitee', createAttempt({ body: stored, encryptionType: 0 })).body));
  assert.equal(plain.password, 'secret');
  assert.equal(plain.sign, '');
});

/** Deliveries that are sent again over HTTP: each request once, on one process or two, and in the profile of the body. */
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { test } from 'node:test';
import { waitUntil } from '../support/basics/wait-until.ts';
import { startReceiver } from '../support/network/receiver.ts';
import { createStorePlace, engines, findReasonToSkip } from '../support/store/engines.ts';
import { numberedPush, startPublishingService } from '../support/webhooks/publishing-service.ts';

const AT_ONCE = 16;

interface Detail {
  readonly state: string;
  readonly attempts: number;
  readonly attempt_log: readonly { readonly attempt: number }[];
}

for (const engine of engines)
  test(`of redeliveries that are asked for at once, one is sent and the others are refused (${engine})`, {
    skip: findReasonToSkip(engine),
    timeout: 120_000,
  }, async () => {
    const waiting: ServerResponse[] = [];
    // The first delivery is answered at once; a redelivery is under way until the test lets it end.
    await using receiver = await startReceiver((_, response, index) => {
      if (index === 0) response.end('ok');
      else waiting.push(response);
    });
    const processes = engine === 'sqlite' ? 1 : 2;
    const place = await createStorePlace(engine);
    await using service = await startPublishingService({ place, processes, urls: [receiver.url] });
    const published = await service.call('POST', new URL(service.eventsUrl(0)).pathname, numberedPush(1));
    const [delivery] = (published.json as { deliveries: { id: number; hook_id: number }[] }).deliveries;
    const path = `/api/v5/repos/grace/doors/hooks/${delivery!.hook_id}/deliveries/${delivery!.id}`;
    const readDetail = async () => (await service.call('GET', path)).json as Detail;
    const waitUntilEnded = (attempts: number): Promise<Detail> =>
      waitUntil(async () => {
        const detail = await readDetail();
        return detail.state === 'succeeded' && detail.attempts >= attempts && detail;
      });
    await waitUntilEnded(1);

    const ROUNDS = 3;
    for (let round = 1; round <= ROUNDS; round += 1) {
      const answers = await Promise.all(
        Array.from({ length: AT_ONCE }, async (_, index) => {
          const { httpUrl } = service.programs[index % service.programs.length]!;
          const headers = { authorization: `Bearer ${service.token}` };
          const response = await fetch(`${httpUrl}${path}/redeliver`, { method: 'POST', headers });
          return { status: response.status, text: await response.text() };
        }),
      );
      assert.equal(answers.filter(({ status }) => status === 202).length, 1);
      for (const { status, text } of answers.filter((answer) => answer.status !== 202)) {
        assert.equal(status, 409, text);
        assert.match(text, /Cannot redeliver \d+: an earlier redelivery of it is being sent or waits to be sent/);
      }
      await receiver.waitFor(1 + round);
      waiting.shift()?.end('ok');
      const detail = await waitUntilEnded(1 + round);
      assert.equal(detail.attempts, 1 + round);
      assert.deepEqual(
        detail.attempt_log.map(({ attempt }) => attempt).toSorted((one, other) => one - other),
        Array.from({ length: 1 + round }, (_, index) => index + 1),
      );
    }
    assert.equal(receiver.received.length, 1 + ROUNDS);
  });

for (const engine of engines)
  test(`a delivery keeps the profile of its body when its webhook gets another (${engine})`, {
    skip: findReasonToSkip(engine),
    timeout: 120_000,
  }, async () => {
    await using receiver = await startReceiver();
    const place = await createStorePlace(engine);
    await using service = await startPublishingService({ place, processes: 1, urls: [receiver.url] });
    const [hookId] = service.hookIds;
    const hook = `/api/v5/repos/grace/doors/hooks/${hookId}`;
    const change = async (json: object) =>
      assert.equal((await service.call('PATCH', hook, { url: receiver.url, ...json })).status, 200);
    const publish = async (number: number) => {
      const { json } = await service.call('POST', new URL(service.eventsUrl(0)).pathname, numberedPush(number));
      return (json as { deliveries: { id: number }[] }).deliveries[0]!.id;
    };
    const accepted = await publish(1);
    await receiver.waitFor(1);
    await change({ active: false });
    await publish(2);
    await change({ profile: 'gitee', active: true });
    await receiver.waitFor(2);
    await waitUntil(async () => {
      const { json } = await service.call('GET', `${hook}/deliveries?state=succeeded`);
      return (json as unknown[]).length === 2;
    });
    assert.equal((await service.call('POST', `${hook}/deliveries/${accepted}/redeliver`)).status, 202);
    await receiver.waitFor(3);
    await publish(3);
    await receiver.waitFor(4);
    const [first, held, again, last] = receiver.received;
    for (const one of [first, held, again]) {
      assert.equal(one?.headers['x-gitcode-event'], 'Push Hook');
      assert.equal(one?.headers['x-gitee-event'], undefined);
    }
    assert.deepEqual(again?.body, first?.body);
    assert.equal(last?.headers['x-gitee-event'], 'Push Hook');
  });

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mock, test } from 'node:test';
import { openSocketPair } from '../../../test/support/network/socket-pair.ts';
import { endSocket, endSocketAfterFault, endSocketInTime, endSocketSoon } from './closing.ts';

for (const end of [endSocket, endSocketSoon, endSocketInTime, endSocketAfterFault])
  test(`${end.name}() waits no longer for a connection that has closed`, async (t) => {
    mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
    t.after(() => mock.timers.reset());
    using pair = await openSocketPair();
    const { client, accepted } = pair;
    const closed = once(accepted, 'close');
    end(accepted);
    client.destroy();
    accepted.resume();
    await closed;
    const destroy = mock.method(accepted, 'destroy');
    mock.timers.tick(60_000);
    assert.equal(destroy.mock.callCount(), 0);
  });

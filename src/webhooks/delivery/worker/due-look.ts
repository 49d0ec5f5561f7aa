/**
 * Finds the endpoints that have become due, a page at a time. When there are more than a page, the next look goes on
 * behind it, so that all come in turn.
 */
import type { Store } from '../../../database/store.ts';
import type { World } from '../../../world.ts';
import { readDueEndpoints } from '../queue/delivery-queue-store.ts';
import { RECONNECTED } from '../schedule/pause.ts';
import type { EndpointBook } from './endpoint-book.ts';
import type { EndpointControl } from './endpoint-control.ts';
import type { ShardKeeper } from './shard-keeper.ts';

const PAGE = 2000;
const START = { afterMs: -1, afterHookId: -1 };

export interface DueLook {
  /** Something may have become due. */
  want(): void;
  /** In how many milliseconds there is to be a look; undefined when none is wanted. */
  waitMs(): number | undefined;
  run(): Promise<void>;
}

export interface DueLookParts {
  readonly store: Store;
  readonly world: World;
  readonly keeper: ShardKeeper;
  readonly book: EndpointBook;
  readonly control: EndpointControl;
}

export function createDueLook({ store, world, keeper, book, control }: DueLookParts): DueLook {
  let isWanted = true;
  let notBeforeMs = 0;
  let place = START;

  return {
    want: () => {
      isWanted = true;
    },
    waitMs: () => (isWanted ? Math.max(0, notBeforeMs - world.monotonicMs()) : undefined),
    run: async () => {
      isWanted = false;
      const startMs = world.monotonicMs();
      const page = { owner: keeper.owner, nowMs: world.nowMs(), ...place, limit: PAGE };
      const rows = await readDueEndpoints(store, page);
      for (const row of rows) {
        if (keeper.epochOf(row.shard) === undefined) continue;
        const endpoint = book.note(row);
        if (endpoint === undefined) continue;
        if (row.pause_reason === RECONNECTED) control.learnOfAnswerElsewhere(endpoint);
        control.pauseIfKeptBack(endpoint);
      }
      const last = rows.length === PAGE ? rows.at(-1) : undefined;
      isWanted ||= last !== undefined || place !== START;
      place = last === undefined ? START : { afterMs: last.next_at_ms, afterHookId: last.hook_id };
      // A look at many endpoints takes time from sending: at most a quarter of it.
      notBeforeMs = world.monotonicMs() + 3 * (world.monotonicMs() - startMs);
    },
  };
}

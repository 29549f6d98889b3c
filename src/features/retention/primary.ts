import { RateLimit } from '../../primary/access/rate-limit.js';
import type { StoredKind } from '../../primary/features/stored-kind.js';
import { holderOf } from '../../shared/client.js';
import { timestamp } from '../../shared/clock.js';
import { RelayError } from '../../shared/errors.js';
import type { Handlers } from '../../shared/ipc/peer.js';
import { usingStore } from '../stores/contract/full-store.js';
import { usageOf } from '../usage/primary.js';
import { exportOf } from './export.js';
import { type calls, maxExportsAnHour, type Retention } from './shared.js';
import { storedByCore } from './stored-data.js';

/**
 * Largest number of exports an hour of a key holder with its sub-clients: each export reads everything and writes a
 * record.
 */
const exportRate = { maxRequests: maxExportsAnHour, windowMs: 3_600_000 };

const tooMany = `you may export ${maxExportsAnHour} times an hour`;

const provider =
  'The model CLI sends each prompt to its provider, unless the model runs on this host. The terms of the account decide how long the provider stores it.';

/** Creates the part that describes what this service stores: the core, and each feature. */
export const createRetention = usingStore((core) => {
  const { config, storedKinds, mayStore, host, beforeAct } = core;
  const usage = usageOf(core);
  const limit = new RateLimit((client) => [{ client: holderOf(client), rate: exportRate }], host.clock);
  const handlers: Handlers<typeof calls> = {
    retention: async ({ client }) => ({
      store: config.store.kind,
      is_stored: mayStore(client),
      data: [...storedByCore(config), ...storedKinds().toSorted(byKind)].map(storedDataOf),
      provider,
    }),
    exportData: async function* ({ client, requestId }) {
      const { isAllowed, resetSeconds: retryAfterSeconds } = await limit.takeRequest(client);
      if (!isAllowed) throw new RelayError('rate_limited', tooMany, { retryAfterSeconds });
      const at = timestamp(host.clock.now());
      const record = { act: 'client_exported', by: client, target: client, request_id: requestId } as const;
      for await (const text of inPieces(
        exportOf({ ...core, usage }, client, at, (end) => beforeAct({ ...record, ...end })),
      )) {
        await core.yieldInOrder();
        yield { text };
      }
    },
  };
  return { handlers };
});

/** UTF-16 units from which lines are sent together. */
const pieceUnits = 16 * 1024;

/** Joins short lines, because each piece is a message to the worker. */
async function* inPieces(lines: AsyncIterable<string>): AsyncGenerator<string> {
  let piece = '';
  for await (const line of lines) {
    piece += line;
    if (piece.length < pieceUnits) continue;
    yield piece;
    piece = '';
  }
  yield piece;
}

/** Orders the data of features by name, so that the order does not depend on the list of features. */
function byKind({ kind }: StoredKind, other: StoredKind): number {
  return kind < other.kind ? -1 : 1;
}

function storedDataOf({ keptMs, until, readers, variables, ...others }: StoredKind): Retention['data'][number] {
  const seconds = keptMs === null ? null : keptMs / 1000;
  return { ...others, kept_seconds: seconds, kept: until, readers: [...readers], variables: [...variables] };
}

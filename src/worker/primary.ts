import type { Peer } from '../shared/ipc/peer.js';
import type { PrimaryCalls, WorkerCalls } from '../shared/ipc/protocol.js';

/** The primary, as a worker sees it. */
export type Primary = Peer<PrimaryCalls, WorkerCalls>;

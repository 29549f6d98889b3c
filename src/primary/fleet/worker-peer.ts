import type { Worker } from 'node:cluster';
import { channelToWorker } from '../../shared/ipc/channel.js';
import type { Handlers } from '../../shared/ipc/message.js';
import { Peer } from '../../shared/ipc/peer.js';
import { type PrimaryCalls, primaryCalls, type WorkerCalls, workerCalls } from '../../shared/ipc/protocol.js';
import { describeError, type Logger } from '../../shared/logger.js';

export type WorkerPeer = Peer<WorkerCalls, PrimaryCalls>;

type OwnCalls = 'listening' | 'heartbeat' | 'figures' | 'leaving';

/** Handlers of the calls that every worker is answered alike. */
export type SharedHandlers = Omit<Handlers<PrimaryCalls>, OwnCalls>;
/** Handlers of the calls that are about the worker itself. */
export type OwnHandlers = Pick<Handlers<PrimaryCalls>, OwnCalls>;

/** The primary's end of the channel to one worker. */
export function peerOf(worker: Worker, shared: SharedHandlers, own: OwnHandlers, log: Logger): WorkerPeer {
  const onFault = (fault: unknown) => log.error('internal_error', { error: describeError(fault) });
  return new Peer(channelToWorker(worker), workerCalls, primaryCalls, { ...shared, ...own }, onFault);
}

import type { Worker } from 'node:cluster';
import { channelToWorker } from '../../shared/ipc/channel.js';
import type { Handlers } from '../../shared/ipc/message.js';
import { Peer } from '../../shared/ipc/peer.js';
import { type PrimaryCalls, primaryCalls, type WorkerCalls, workerCalls } from '../../shared/ipc/protocol.js';
import { describeError, type Logger } from '../../shared/logger.js';

export type WorkerPeer = Peer<WorkerCalls, PrimaryCalls>;

/** What answers every worker alike. */
export type SharedHandlers = Omit<Handlers<PrimaryCalls>, 'heartbeat' | 'listening'>;

/** The primary's end of the channel to one worker; `onHeartbeat` gets what the worker has counted, as JSON text. */
export function peerOf(
  worker: Worker,
  shared: SharedHandlers,
  onHeartbeat: (snapshot: string) => void,
  log: Logger,
): WorkerPeer {
  const handlers: Handlers<PrimaryCalls> = {
    ...shared,
    // The cluster module says so of the addresses that it has opened itself.
    listening: ({ host, port }) => {
      worker.emit('listening', { address: host, port, addressType: 4 });
      return {};
    },
    heartbeat: ({ text }) => {
      onHeartbeat(text);
      return {};
    },
  };
  const onFault = (fault: unknown) => log.error('internal_error', { error: describeError(fault) });
  return new Peer(channelToWorker(worker), workerCalls, primaryCalls, handlers, onFault);
}

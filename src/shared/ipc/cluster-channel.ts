import cluster, { type Worker } from 'node:cluster';
import type { Channel } from './peer.js';

/** Returns the primary's end of the cluster channel to a worker. */
export function channelToWorker(worker: Worker): Channel {
  return {
    send: (message, done) => {
      if (worker.isConnected()) worker.process.send(message, undefined, {}, done);
      else done(new Error('channel closed'));
    },
    onMessage: (listener) => {
      worker.on('message', listener);
      onceGone(worker, () => worker.off('message', listener));
    },
    onClose: (listener) => onceGone(worker, listener),
  };
}

/**
 * Calls `listener` when a worker has disconnected. If a worker is killed while a connection is passed to it, Node emits
 * `exit` but never `disconnect`.
 */
function onceGone(worker: Worker, listener: () => void): void {
  const onDisconnect = () => {
    worker.off('disconnect', onDisconnect).off('exit', onDisconnect);
    listener();
  };
  worker.once('disconnect', onDisconnect).once('exit', onDisconnect);
}

/** Returns the worker's end of the cluster channel. The worker decides how to react when it closes. */
export function channelToPrimary(self: NodeJS.Process): Channel {
  const { worker } = cluster;
  worker?.once('disconnect', () => {
    worker.exitedAfterDisconnect = true; // else Node ends the worker when the channel closes
  });
  return {
    send: (message, done) => {
      if (self.connected && self.send !== undefined) self.send(message, undefined, {}, done);
      else done(new Error('channel closed'));
    },
    onMessage: (listener) => void self.on('message', listener),
    onClose: (listener) => void self.once('disconnect', listener),
  };
}

import cluster, { type Worker } from 'node:cluster';

/** Carries messages both ways, in order, until it closes. */
export interface Channel {
  /** `done` is called when the message has left, or with the error that stopped it. */
  send(message: object, done: (error: Error | null) => void): void;
  onMessage(listener: (message: unknown) => void): void;
  /** Called once; never again after that is anything received. */
  onClose(listener: () => void): void;
}

/** The primary's end of the cluster channel to one worker. */
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

/** If a worker is killed while a connection is passed to it, Node emits `exit` but never `disconnect`. */
function onceGone(worker: Worker, listener: () => void): void {
  const gone = () => {
    worker.off('disconnect', gone).off('exit', gone);
    listener();
  };
  worker.once('disconnect', gone).once('exit', gone);
}

/** The worker's end of the cluster channel. What happens when it closes is for the worker to decide. */
export function channelToPrimary(self: NodeJS.Process): Channel {
  const { worker } = cluster;
  worker?.once('disconnect', () => {
    worker.exitedAfterDisconnect = true; // else Node ends the process here and now
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

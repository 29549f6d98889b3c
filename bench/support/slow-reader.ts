import { connect } from 'node:net';
import { jsonPost } from '../../test/support/clients/raw-http.js';

export interface SlowReader {
  readonly bytes: number;
  leave(): void;
}

const sipMs = 200;

/** Sends a prompt, and then reads a chunk from time to time, or nothing at all. */
export function readSlowly(port: number, body: object, readsNothing: boolean): SlowReader {
  const socket = connect(port, '127.0.0.1').pause();
  let bytes = 0;
  socket.on('error', () => {});
  socket.write(jsonPost('/ask', JSON.stringify(body)));
  const sip = setInterval(() => {
    const chunk = readsNothing ? null : (socket.read() as Buffer | null);
    bytes += chunk?.length ?? 0;
  }, sipMs);
  const leave = () => {
    clearInterval(sip);
    socket.destroy();
  };
  return {
    get bytes() {
      return bytes;
    },
    leave,
  };
}

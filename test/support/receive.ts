import { once } from 'node:events';
import { connect } from 'node:net';

/** All that came back on one connection. */
export interface Received {
  readonly statuses: readonly number[];
  readonly requestIds: readonly string[];
  readonly isClosed: boolean;
}

/** No answer, once one has come, takes this long for the next one to come. */
const quietMs = 250;

/** Sends these bytes, and reads until the other side closes or has been quiet after an answer. */
export async function receive(port: number, bytes: Buffer): Promise<Received> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  await once(socket, 'connect');
  let text = '';
  let isClosed = false;
  const over = new Promise<void>((resolve) => {
    let timer: NodeJS.Timeout | undefined;
    const close = () => {
      isClosed = true;
      clearTimeout(timer);
      resolve();
    };
    socket.setEncoding('latin1').on('data', (piece: string) => {
      text += piece;
      clearTimeout(timer);
      timer = setTimeout(resolve, quietMs);
    });
    socket.on('error', close).on('end', close).on('close', close);
  });
  socket.write(bytes);
  await over;
  socket.destroy();
  const heads = [...text.matchAll(/HTTP\/1\.1 (\d+) [^\r]*\r\n(.*?)\r\n\r\n/gs)];
  return {
    statuses: heads.map(([, status]) => Number(status)).filter((status) => status >= 200),
    requestIds: heads.flatMap(([, , headers = '']) => /^x-request-id: (\S+)/im.exec(headers)?.[1] ?? []),
    isClosed,
  };
}

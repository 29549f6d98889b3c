import { connect, type Socket } from 'node:net';
import { Lanes } from './lanes.js';
import { perform, type Task } from './task.js';

/**
 * Program that requests the same page repeatedly on persistent connections. Arguments: port and path. Uses plain
 * sockets, because an HTTP client would cost as much as the measured server.
 */

const port = Number(process.argv[2]);
const request = `GET ${process.argv[3]} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`;

process.on('message', (task: Task) => {
  const sockets = new Lanes(() => connect(port, '127.0.0.1').setNoDelay().setEncoding('latin1'));
  void perform(task, () => sockets.with(get)).then((result) => {
    for (const socket of sockets.all) socket.destroy();
    process.send?.(result);
  });
});

function get(socket: Socket): Promise<void> {
  return new Promise((resolve, reject) => {
    let text = '';
    const onData = (chunk: string) => {
      text += chunk;
      if (!isWhole(text)) return;
      socket.off('data', onData).off('error', reject);
      if (text.startsWith('HTTP/1.1 200 ')) resolve();
      else reject(new Error(`answered ${text.slice(0, 500)}`));
    };
    socket.on('data', onData).once('error', reject).write(request);
  });
}

function isWhole(text: string): boolean {
  const headEnd = text.indexOf('\r\n\r\n');
  const length = /\r\ncontent-length: (\d+)/i.exec(text)?.[1];
  return headEnd >= 0 && text.length === headEnd + 4 + Number(length);
}

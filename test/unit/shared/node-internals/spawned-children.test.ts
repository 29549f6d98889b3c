import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const modules = join(__dirname, '..', '..', '..', '..', 'src');

/**
 * Program that starts a program repeatedly, each time with more free descriptors, and prints how many sockets remain.
 */
const startsWithFew = `
const { closeSync, openSync, readdirSync, readlinkSync } = require('node:fs');
const { execFile, spawn } = require('node:child_process');
const { closingFailed } = require(process.argv[1] + '/shared/node-internals/spawned-children.js');
const sockets = () => readdirSync('/proc/self/fd').filter((fd) => {
  try {
    return readlinkSync('/proc/self/fd/' + fd).startsWith('socket:');
  } catch {
    return false;
  }
}).length;
const own = sockets();
const start = { spawn: () => spawn('/bin/true', { stdio: 'pipe' }),
  execFile: () => execFile('/bin/true', () => {}),
}[process.argv[2]];
async function leftWith(spare) {
  const opened = [];
  try {
    for (;;) opened.push(openSync('/dev/null'));
  } catch {}
  for (let count = 0; count < spare; count++) closeSync(opened.pop());
  const child = closingFailed(start);
  const code = await new Promise((resolve) => child.once('error', ({ code }) => resolve(code)).once('close', resolve));
  for (const fd of opened) closeSync(fd);
  await new Promise((resolve) => setTimeout(resolve, 20));
  return [code, sockets() - own];
}
(async () => {
  const seen = [];
  for (let spare = 2; spare <= 12; spare++) seen.push(await leftWith(spare));
  console.log(JSON.stringify(seen));
})();
`;

it.each(['spawn', 'execFile'])(
  'A program that cannot start because there are no file descriptors leaves no socket behind, however few there are: %s',
  async (how) => {
    const words = [process.execPath, '-e', startsWithFew, modules, how];
    const { stdout } = await promisify(execFile)('/bin/sh', ['-c', 'ulimit -n 64; exec "$@"', 'sh', ...words]);
    const seen: [code: string | number, sockets: number][] = JSON.parse(stdout);
    expect(seen.map(([, sockets]) => sockets)).toEqual(seen.map(() => 0));
    expect(new Set(seen.map(([code]) => code))).toEqual(new Set(['EMFILE', 0]));
  },
);

import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const modules = join(__dirname, '..', '..', '..', '..', 'src');

/** Program that closes a descriptor, reads a file, and prints the descriptors open in a child. */
const closes = `
const { closeInherited } = require(process.argv[1] + '/primary/lifecycle/start-environment.js');
closeInherited([41]).then(async () => {
  const { execFileSync } = require('node:child_process');
  await require('node:fs/promises').readFile('/etc/passwd');
  process.stdout.write(execFileSync('/bin/ls', ['/proc/self/fd'], { encoding: 'utf8' }));
});
`;

it('A descriptor that the service inherited by accident is not passed on to child processes, unlike one that was meant for them', async () => {
  const words = [process.execPath, '-e', closes, modules];
  const script = 'exec "$@" 40</etc/passwd 41</etc/passwd 250</etc/passwd';
  const { stdout } = await promisify(execFile)('/bin/bash', ['-c', script, 'bash', ...words]);
  expect(stdout.trim().split('\n').toSorted()).toEqual(['0', '1', '2', '3', '41']); // ls itself has opened 3
});

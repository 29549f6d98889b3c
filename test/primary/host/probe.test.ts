import { endsWell } from '../../../src/primary/host/probe.js';

const limitMs = 30_000;

describe('a program that is tried out', () => {
  it.each<[string, readonly string[], boolean, number]>([
    ['ends well', [process.execPath, '-e', ''], true, limitMs],
    ['ends with a fault', [process.execPath, '-e', 'process.exit(1)'], false, limitMs],
    ['does not end', [process.execPath, '-e', 'setInterval(() => {}, 1000)'], false, 50],
    ['can not be started', ['/nowhere/program'], false, 50],
    ['can not even be named', ['not\0a program'], false, limitMs],
  ])('%s', async (_, [program = '', ...args], isSound, withinMs) => {
    expect(await endsWell(program, args, withinMs)).toBe(isSound);
  });

  it('is told nothing of our environment', async () => {
    const asks = 'process.exit(process.env.PATH === undefined ? 0 : 1)';
    expect(await endsWell(process.execPath, ['-e', asks], limitMs)).toBe(true);
  });
});

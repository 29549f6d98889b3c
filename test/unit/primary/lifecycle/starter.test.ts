import { ancestors, hangUpHandler, isStartedByNpm, watchStarter } from '../../../../src/primary/lifecycle/starter.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';

function hangUps(terminalAtStart: boolean) {
  const clock = new FakeClock();
  const terminal = { isThere: terminalAtStart };
  const told: string[] = [];
  const actions = { reload: () => void told.push('reload'), end: () => void told.push('end') };
  return { clock, terminal, told, handle: hangUpHandler(clock, () => terminal.isThere, actions) };
}

describe('SIGHUP', () => {
  it.each([
    ['for a service that was never attached to a terminal', false],
    ['as long as its terminal exists', true],
  ])('is a reload %s', async (_, terminalAtStart) => {
    const { handle, told, clock } = hangUps(terminalAtStart);
    handle();
    await clock.advance(5000);
    expect(told).toEqual(['reload']);
  });

  it('ends a service whose terminal was closed', async () => {
    const { handle, terminal, told } = hangUps(true);
    terminal.isThere = false;
    handle();
    expect(told).toEqual(['end']);
  });

  it('also ends it if the shell sends the signal before the terminal closes', async () => {
    const { handle, terminal, told, clock } = hangUps(true);
    handle();
    terminal.isThere = false;
    await clock.advance(5000);
    expect(told).toEqual(['reload', 'end']);
  });
});

describe('The starter of the service', () => {
  it('is watched if it is an npm command that waits for the service', async () => {
    expect(
      ['exec', 'start', 'run-script', 'test', undefined].map((command) => isStartedByNpm({ npm_command: command })),
    ).toEqual([true, true, false, false, false]);
  });

  it('ends the service when it exits, once', async () => {
    const clock = new FakeClock();
    const placed = { at: '7 5' };
    let ends = 0;
    await watchStarter(
      clock,
      async () => placed.at,
      () => ends++,
    );
    await clock.advance(1000);
    expect(ends).toBe(0);
    placed.at = '1';
    for (let seconds = 0; seconds < 3; seconds++) {
      await clock.advance(1000);
    }
    expect(ends).toBe(1);
  });

  it('is the parent of this process', async () => {
    expect(await ancestors()).toMatch(new RegExp(`^${process.ppid}( \\d+)?$`));
  });
});

import { longestWait, priorityOf } from '../../../../src/features/priority/worker.js';

const request = (headersDistinct: NodeJS.Dict<string[]>, prefer?: string) => ({ headersDistinct, headers: { prefer } });

describe('The priority of a request', () => {
  it('is the service tier, where one that the client may not have is no error', () => {
    const of = (serviceTier: unknown) => priorityOf({ req: request({}), serviceTier }).priority;
    const tiers = ['flex', 'priority', 'auto', 'default', 'standard_only'];
    expect(tiers.map(of)).toEqual(['flex', 'preferred', 'default', 'default', 'default']);
    const others = [undefined, null, '', 'FLEX', 'scale', 1, true, ['flex'], { flex: 1 }, '__proto__', 'preferred'];
    for (const other of others) expect(of(other)).toBeUndefined();
  });

  it('is the header, before the service tier', () => {
    const of = (...values: string[]) => {
      const req = request({ 'x-priority': values });
      return priorityOf({ req, serviceTier: 'flex' }).priority;
    };
    expect(['flex', 'default', 'priority'].map((value) => of(value))).toEqual(['flex', 'default', 'priority']);
    for (const values of [[''], ['high'], ['preferred'], ['Flex'], ['flex, priority'], ['flex', 'flex']])
      expect(() => of(...values)).toThrow('must be one of flex, default, priority');
  });
});

describe('The longest wait of a request', () => {
  const secondsOf = (prefer?: string) => {
    const { maxWaitMs } = longestWait({ req: request({}, prefer) });
    return maxWaitMs === undefined ? null : maxWaitMs / 1000;
  };

  it('is that of the first preference of this name among several', () => {
    expect(secondsOf('wait=20')).toBe(20);
    expect(secondsOf('respond-async, WAIT = "20" ; x=1, wait=5')).toBe(20);
    expect(secondsOf('handling="a, wait=1", wait=2')).toBe(2);
    expect(secondsOf('wait=0')).toBe(0);
  });

  it('is at most an hour', () => {
    expect(secondsOf('wait=1000000000')).toBe(3600);
    expect(secondsOf(`wait=${'9'.repeat(5000)}`)).toBe(3600);
  });

  it('has no limit by a value that is no number of seconds', () => {
    const nonsense = [undefined, '', 'wait', 'wait=', 'wait=-1', 'wait=1e9', 'wait=1.5', 'wait=x', 'wait=0x10'];
    const others = ['waiting=5', 'foo; wait=5', 'foo="wait=5"', 'wait=x, wait=5', '"', 'wait="5'];
    for (const prefer of [...nonsense, ...others]) expect([prefer, secondsOf(prefer)]).toEqual([prefer, null]);
  });

  it('is found in linear time', () => {
    const long = [
      '",'.repeat(20_000),
      `wait${' '.repeat(50_000)}x`,
      `wait=1${' '.repeat(50_000)}x`,
      '"\\'.repeat(30_000),
    ];
    const startMs = performance.now();
    for (const prefer of long) secondsOf(prefer);
    expect(performance.now() - startMs).toBeLessThan(2000);
  });
});

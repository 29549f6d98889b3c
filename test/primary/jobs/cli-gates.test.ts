import { CliGates, type CliPlace } from '../../../src/primary/jobs/cli-gates.js';

function gatesWith(limits: Readonly<Record<string, number>>, isAtLimit?: (client: string) => boolean) {
  const gates = new CliGates(limits, isAtLimit);
  const entered: string[] = [];
  const enter = (text: string, name: string, client = 'a'): CliPlace => {
    const place = gates.placeFor(client, { name });
    place.enter(() => void entered.push(text));
    return place;
  };
  return { gates, entered, enter };
}

const local = { name: 'local' };

describe('A CLI with a limit', () => {
  it('lets as many jobs through at once as it may, the others as these leave', () => {
    const { gates, entered, enter } = gatesWith({ local: 2 });
    const [first] = [enter('one', 'local'), enter('two', 'local'), enter('three', 'local')];
    expect([entered, gates.hasRoomFor(local)]).toEqual([['one', 'two'], false]);
    first?.leave();
    expect(entered).toEqual(['one', 'two', 'three']);
  });

  it('keeps nobody from another CLI', () => {
    const { entered, enter } = gatesWith({ local: 1 });
    for (const name of ['one', 'two']) enter(name, 'local');
    for (const name of ['three', 'four']) enter(name, 'claude');
    expect(entered).toEqual(['one', 'three', 'four']);
  });

  it('takes clients in turn', () => {
    const { entered, enter } = gatesWith({ local: 1 });
    const first = enter('a1', 'local');
    const waiting = [enter('a2', 'local'), enter('a3', 'local'), enter('b1', 'local', 'b')];
    first.leave();
    waiting[0]?.leave();
    expect(entered).toEqual(['a1', 'a2', 'b1']);
  });

  it('passes over a client that has as many slots as it may, until it has fewer', () => {
    const full = new Set(['a']);
    const { gates, entered, enter } = gatesWith({ local: 1 }, (client) => full.has(client));
    enter('a1', 'local');
    const other = enter('b1', 'local', 'b');
    expect(entered).toEqual(['b1']);
    other.leave();
    expect(entered).toEqual(['b1']);
    full.delete('a');
    gates.changed();
    expect(entered).toEqual(['b1', 'a1']);
  });

  it('forgets a job that ends while it waits, and one that ended before it came', () => {
    const { gates, entered, enter } = gatesWith({ local: 1 });
    const [first, second] = [enter('one', 'local'), enter('two', 'local')];
    second.leave();
    const late = gates.placeFor('a', local);
    late.leave();
    late.enter(() => void entered.push('late'));
    first.leave();
    expect([entered, gates.hasRoomFor(local)]).toEqual([['one'], true]);
  });
});

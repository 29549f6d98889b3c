import { HeldCalls } from '../../../../../../src/primary/cli/adapters/common/held-calls.js';

const result = (id: string) => ({ id, text: `of ${id}`, isError: false });

function held() {
  return new HeldCalls<string>((request, { text }) => `${request}: ${text}\n`);
}

describe('Open calls of a program', () => {
  it('are answered in order, when both the request and the result have arrived', () => {
    const calls = held();
    for (const id of ['A', 'B', 'C']) calls.called(id);
    expect([calls.requested('A', 'first'), calls.requested('B', 'second')]).toEqual(['', '']);
    expect(calls.answer([result('C'), result('B'), result('A')])).toBe('first: of A\nsecond: of B\n');
    expect(calls.isWaiting).toBe(true);
    expect(calls.requested('C', 'third')).toBe('third: of C\n');
    expect([calls.isWaiting, calls.has('C')]).toEqual([false, false]);
  });

  it('count as repeated if an earlier call with the same id was answered', () => {
    const calls = held();
    calls.called('A');
    calls.requested('A', 'first');
    expect(calls.areRepeated([{ id: 'A' }])).toBe(false);
    calls.answer([result('A')]);
    calls.called('A');
    expect([calls.areRepeated([{ id: 'A' }]), calls.areRepeated([{ id: 'B' }])]).toEqual([true, false]);
    expect(calls.areRepeated([{ id: 'B' }, { id: 'B' }])).toBe(true);
  });

  it('may be requested before the model is known to have made them', () => {
    const calls = held();
    calls.requested('A', 'early');
    calls.called('A');
    expect(calls.answer([result('A')])).toBe('early: of A\n');
  });

  it('get no result of another call', () => {
    const calls = held();
    calls.called('A');
    calls.requested('A', 'first');
    expect(calls.answer([result('X')])).toBe('');
    expect(calls.isWaiting).toBe(true);
  });
});
